package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"broker/operate/service"
)

func TestClusterStatusShowsTheDisk(t *testing.T) {
	t.Parallel()
	for want, n := range map[string]service.ClusterNode{
		"-":             {},
		"0.8ms":         {WriteTime: 0.0008},
		"slow, 120.4ms": {WriteTime: 0.12041, DiskSlow: true},
		"slow, -":       {DiskSlow: true},
	} {
		if got := diskText(&n); got != want {
			t.Errorf("%+v is shown as %q, want %q", n, got, want)
		}
	}
}

func TestClusterStatusNamesProblems(t *testing.T) {
	t.Parallel()
	for want, n := range map[string]service.ClusterNode{
		"-":                           {Role: "follower"},
		"disk nearly full":            {Role: "leader", DiskLow: true},
		"disk nearly full, slow disk": {Role: "follower", DiskLow: true, DiskSlow: true},
		"no link to the leader":       {Role: "learner", Unlinked: true},
	} {
		if row := clusterRow(&n); row[len(row)-1] != want {
			t.Errorf("%+v: problems are %q, want %q", n, row[len(row)-1], want)
		}
	}
	if row := clusterRow(&service.ClusterNode{Role: "unreachable", DiskLow: true}); row[len(row)-1] != "-" {
		t.Errorf("problems of an unreachable node are %q", row[len(row)-1])
	}
}

// Of a node that does not answer, nobody knows whether it is warm, nor how its clock is.
func TestClusterStatusSaysWhatNobodyKnows(t *testing.T) {
	t.Parallel()
	for role, want := range map[string][2]string{
		"follower": {"no", "+3s"}, "leader": {"no", "+3s"}, "unreachable": {"-", "-"}, "starting": {"-", "-"},
	} {
		row := clusterRow(&service.ClusterNode{ID: "n1", Role: role, ClockSkew: 3})
		if got := [2]string{row[5], row[6]}; got != want {
			t.Errorf("%s: warm and clock are %q, want %q", role, got, want)
		}
	}
}

func TestTransferSaysThatTheNodeLeadsAlready(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"leader":"n2","format":1,"nodes":[]}`))
	}))
	defer server.Close()
	for node, want := range map[string]string{
		"n2": "n2 leads already", "n3": "the lead is handed over", "": "the lead is handed over",
	} {
		cmd := clusterCommand()
		var out bytes.Buffer
		cmd.SetOut(&out)
		args := []string{"transfer", "--server", server.URL}
		if node != "" {
			args = append(args, node)
		}
		cmd.SetArgs(args)
		if err := cmd.Execute(); err != nil || out.String() != want+"\n" {
			t.Errorf("%q: %q, %v, want %s", node, out.String(), err, want)
		}
	}
}
