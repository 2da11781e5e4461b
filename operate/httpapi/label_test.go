package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"broker/core"
)

// Queue names that Gearman clients choose must neither crash the process during a scrape nor hide the metrics of other
// queues.
func TestEveryQueueNameHasItsOwnLabel(t *testing.T) {
	t.Parallel()
	f := setup(t, Options{})
	names := []string{
		"\xff", "\xff\xfe", `\xff`, `"\xff"`, `"\"\\xff\""`, "\ufffd", otherQueues, `"(other)"`, "a\nbroker_ready 0",
		`a",state="`, "\x00",
	}
	f.broker.queues = make([]core.QueueInfo, maxQueues+10)
	for i := range f.broker.queues {
		f.broker.queues[i] = core.QueueInfo{Name: "q" + strings.Repeat("x", i), Normal: 1}
		if i < len(names) {
			f.broker.queues[i] = core.QueueInfo{Name: names[i], Normal: 1}
			f.broker.queues[i].Counts.Submitted[core.Gearman] = 1
		}
	}
	f.broker.busiest = f.broker.queues[:maxQueues]
	f.broker.stats.Queues = len(f.broker.queues)
	f.broker.stats.Jobs[core.Ready] = len(f.broker.queues)
	f.broker.stats.ByOrigin[core.Gearman].Submitted = 1
	f.ready()
	f.broker.stats.ByOrigin[core.Gearman].Submitted = 100
	status, body := f.get("/metrics", "")
	if status != http.StatusOK {
		t.Fatalf("%d: %.300s", status, body)
	}
	f.lines(body, `broker_jobs{queue="(other)",state="ready"} 10`, "broker_ready 1")
	if n := strings.Count(body, `state="ready"} 1`+"\n"); n != maxQueues {
		t.Errorf("%d queues have a label of their own", n)
	}
}
