package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"broker/operate/service"
)

func TestStateOfTheBrokerIsMarked(t *testing.T) {
	t.Parallel()
	as := func(role string) *service.Cluster {
		return &service.Cluster{Numbers: func() service.ClusterNumbers { return service.ClusterNumbers{Role: role} }}
	}
	for _, one := range []struct {
		sum     service.Summary
		cluster *service.Cluster
		want    string
	}{
		{service.Summary{}, nil, "[{ok serving}]"},
		{service.Summary{Draining: true, DiskFull: true}, nil, "[{failed disk nearly full: new jobs are refused} {draining draining}]"},
		{service.Summary{Stopped: true}, nil, "[{failed the store has failed}]"},
		{service.Summary{}, as("leader"), "[{ok serving} {leader leads the cluster}]"},
		{service.Summary{}, as("follower"), "[{ok serving} {ready follower in the cluster}]"},
		{service.Summary{}, as(""), "[{ok serving} {draining not in the cluster yet}]"},
	} {
		if got := fmt.Sprint(marks(&one.sum, one.cluster)); got != one.want {
			t.Errorf("got %s, want %s", got, one.want)
		}
	}
}

func TestOverviewPausesAndResumesAQueueThatNeedsALook(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.dies("Timeout", "no answer")
	f.wants(f.get("/"), `name="do" value="pause" aria-label="Pause mail"`)
	r := httptest.NewRequest(http.MethodPost, "http://localhost/queues", strings.NewReader("do=pause&id=mail&back=.%2F"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	f.console.Handler().ServeHTTP(w, r)
	if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != "/" {
		t.Errorf("the form answers %d and leads to %q", w.Code, to)
	}
	f.advance(time.Minute) // the overview is kept for a moment
	f.wants(f.get("/"), `name="do" value="resume" aria-label="Resume mail"`)
}
