package cluster_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"broker/integration/harness"
)

// The leader alone pushes jobs; when another node leads, that one goes on, and no job is pushed twice.
func TestLeaderPushesJobs(t *testing.T) {
	t.Parallel()
	requests := make(chan string, 1000)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests <- r.Header.Get("Broker-Job-Id") + " " + r.Header.Get("Broker-Attempt")
	}))
	t.Cleanup(receiver.Close)
	c := prepare(t, nil,
		calm+fmt.Sprintf("\n[[push]]\nname = \"shop\"\nqueues = [\"mail\"]\nurl = %q\n", receiver.URL)).start()
	seen := make(map[string]bool)
	for range 2 {
		leader := c.leader()
		for i := range 10 {
			id := fmt.Sprint("mail-", jobNumbers.Add(1))
			job := fmt.Sprintf(`{"id": %q, "queue": "mail", "args": []}`, id)
			c.do((leader+i)%size, http.MethodPost, "/jobs", job, nil)
			seen[id+" 1"] = false
		}
		for range 10 {
			select {
			case r := <-requests:
				if twice, known := seen[r]; twice || !known {
					t.Fatalf("pushed: %s (twice: %v)", r, twice)
				}
				seen[r] = true
			case <-time.After(harness.Patience):
				t.Fatal("nothing was pushed")
			}
		}
		harness.Eventually(t, func() string { // the answers have come: the next leader would push again
			var q struct{ Ready, Leased int }
			if err := c.api(leader, http.MethodGet, "/queues/mail", "", &q); err != nil || q.Ready+q.Leased > 0 {
				return fmt.Sprint(q, err)
			}
			return ""
		})
		for i, n := range c.nodes {
			_, text, err := n.Get("/metrics")
			check(t, err)
			if got, want := strings.Contains(text, "broker_push_requests_total{"), i == leader; got != want {
				t.Errorf("n%d counts pushes: %v, want %v", i+1, got, want)
			}
		}
		c.transfer((leader + 1) % size)
	}
	select {
	case r := <-requests:
		t.Errorf("pushed too: %s", r)
	case <-time.After(200 * time.Millisecond):
	}
}
