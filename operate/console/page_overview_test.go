package console

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"broker/operate/service"
)

func TestStateOfTheBrokerIsMarked(t *testing.T) {
	t.Parallel()
	as := func(role string, nodes ...string) service.Cluster {
		return toyCluster{role: role, nodes: clusterOf(nodes...)}
	}
	for _, one := range []struct {
		sum     service.Summary
		cluster service.Cluster
		want    string
	}{
		{service.Summary{}, nil, "[{ok serving }]"},
		{
			service.Summary{Draining: true, DiskFull: true},
			nil,
			"[{failed disk nearly full: new jobs are refused } {draining draining }]",
		},
		{service.Summary{Stopped: true}, nil, "[{failed the store has failed }]"},
		{
			service.Summary{},
			as("leader", "leader", "follower", "follower"),
			"[{ok serving } {ok 3 of 3 nodes cluster} {leader leads the cluster }]",
		},
		{
			service.Summary{},
			as("leader", "leader", "follower", "unreachable"),
			"[{ok serving } {draining 2 of 3 nodes; one more failure stops it cluster} {leader leads the cluster }]",
		},
		{
			service.Summary{},
			as("leader", "leader", "unreachable", "unreachable"),
			"[{ok serving } {failed 1 of 3 nodes; too few cluster} {leader leads the cluster }]",
		},
		{service.Summary{}, as("follower"), "[{ok serving } {ready follower in the cluster }]"},
		{service.Summary{}, as(""), "[{ok serving } {draining not in the cluster yet }]"},
	} {
		var nodes []service.ClusterNode
		if one.cluster != nil {
			nodes = one.cluster.Overview(t.Context()).Nodes
		}
		if got := fmt.Sprint(badges(&one.sum, one.cluster, nodes)); got != one.want {
			t.Errorf("got %s, want %s", got, one.want)
		}
	}
}

func TestOverviewPausesAndResumesAQueueThatNeedsALook(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.dies("Timeout", "no answer")
	f.wants(f.get("/"), `name="do" value="pause" aria-label="Pause mail"`)
	r := httptest.NewRequest(http.MethodPost, "http://localhost/queues",
		strings.NewReader("do=pause&id=mail&back=.%2F"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	f.console.Handler().ServeHTTP(w, r)
	if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != "/" {
		t.Errorf("the form answers %d and leads to %q", w.Code, to)
	}
	f.advance(time.Minute) // the overview is kept for a moment
	f.wants(f.get("/"), `name="do" value="resume" aria-label="Resume mail"`)
}

func TestOverviewListsPausedQueuesWithJobs(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for i := range 20 {
		subs := make([]service.Submission, 20-i)
		for k := range subs {
			subs[k].Queue = fmt.Sprintf("q%02d", i)
		}
		if _, err := f.service.Submit(t.Context(), f.caller, subs, service.SubmitOptions{}); err != nil {
			t.Fatal(err)
		}
		f.advance(time.Second)
	}
	f.post("/queues/q19", url.Values{"do": {"pause"}})
	f.wants(f.get("/"), `aria-label="Resume q19"`)
	f.post("/queues/q19", url.Values{"do": {"resume"}})
	f.advance(time.Minute)
	if strings.Contains(f.get("/"), `aria-label="Pause q19"`) {
		t.Error("a queue that is not paused any more is shown before those whose jobs wait longer")
	}
}

func TestChartsMarkChangesAndSayTheSameAsTheFigures(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.dies("Timeout", "no answer")
	f.post("/queues/mail", url.Values{"do": {"pause"}})
	f.post("/queues/mail", url.Values{"do": {"resume"}})
	f.post("/jobs", url.Values{"action": {"retry"}, "scope": {"all"}, "filter": {"queue=mail"}, "confirmed": {"1"}})
	f.advance(time.Minute)
	page := html.UnescapeString(f.get("/"))
	for _, want := range []string{
		`"text":"broker started"`, `"text":"paused mail"`, `"text":"resumed mail"`, `"text":"jobs.retry, 1 job"`,
		"1 ready, 0 running",
	} {
		f.wants(page, want)
	}
	queue := html.UnescapeString(f.get("/queues/mail?range=30d"))
	f.wants(queue, `"text":"paused mail"`)
	if strings.Contains(queue, "jobs.retry") {
		t.Error("a queue has the marks of all queues")
	}
	f.advance(time.Hour)
	if strings.Contains(html.UnescapeString(f.get("/")), `"text":"paused mail"`) {
		t.Error("a mark stays when its time has left the chart")
	}
}
