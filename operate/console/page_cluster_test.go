package console

import (
	"strings"
	"testing"

	"broker/operate/service"
)

func TestClusterPageShowsHowManyNodesMayFail(t *testing.T) {
	t.Parallel()
	for roles, want := range map[string]string{
		"leader follower follower":                         "1 node may fail",
		"leader follower unreachable":                      "If one more node fails",
		"leader unreachable unreachable":                   "Too few nodes",
		"starting unreachable unreachable":                 "Too few nodes",
		"leader follower follower learner":                 "1 node may fail",
		"leader follower follower follower follower":       "2 nodes may fail",
		"leader follower follower unreachable unreachable": "If one more node fails",
		"": "",
	} {
		d := &clusterData{}
		for role := range strings.FieldsSeq(roles) {
			d.Nodes = append(d.Nodes, service.ClusterNode{Role: role})
		}
		d.weighLoss()
		got := d.Reserve
		if (got == "") != (want == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", roles, got, want)
		}
		if len(d.Nodes) > 0 && d.AtRisk != !strings.Contains(want, "may fail") {
			t.Errorf("%s: at risk %v", roles, d.AtRisk)
		}
	}
}
