package console

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"broker/integration/harness"
)

// TestWaitingJobsSayWhy reads, for each reason, the sentence on the page of a job that waits for it.
func TestWaitingJobsSayWhy(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	b := openBrowser(t, "http://"+broker.HTTP)
	push := func(format string, args ...any) string { t.Helper(); return pushJob(t, broker, format, args...) }
	lease := func(queue string) string {
		t.Helper()
		return fmt.Sprint(api(t, broker, "POST", "/queues/"+queue+"/lease", "")["lease"])
	}
	first := push(`{"queue":"lonely"}`)
	push(`{"queue":"lonely","priority":3}`)
	third := push(`{"queue":"lonely"}`)

	push(`{"queue":"paused"}`)
	api(t, broker, "PATCH", "/queues/paused", `{"paused":true}`)
	paused := push(`{"queue":"paused"}`)

	push(`{"queue":"narrow"}`)
	lease("narrow")
	api(t, broker, "PATCH", "/queues/narrow", `{"throttle":{"concurrency":1}}`)
	throttled := push(`{"queue":"narrow"}`)

	push(`{"queue":"slow"}`)
	api(t, broker, "PATCH", "/queues/slow", `{"throttle":{"rate_per_s":0.001}}`)
	lease("slow")
	rated := push(`{"queue":"slow"}`)

	push(`{"queue":"busy"}`)
	lease("busy")
	busy := push(`{"queue":"busy"}`)

	retrying := push(`{"queue":"fails","max_fails":5}`)
	api(t, broker, "POST", "/leases/"+lease("fails")+"/fail", `{"message":"no","retry_in_s":3600}`)

	before := push(`{"queue":"chain"}`)
	blocked := push(`{"queue":"chain","after":[%q]}`, before)
	lost := push(`{"queue":"chain"}`)
	broken := push(`{"queue":"chain","after":[%q]}`, lost)
	api(t, broker, "DELETE", "/jobs/"+lost, "")

	for _, one := range []struct{ id, want string }{
		{first, "It is ready behind 1 job of its queue. No worker asks for jobs of this queue."},
		{third, "It is ready behind 2 jobs of its queue"},
		{paused, "It is ready behind 1 job of its queue. The queue is paused"},
		{throttled, "At most 1 job of the queue may run at once, and 1 is running."},
		{rated, "At most 0.001 jobs of the queue may start a second: the next may start in 1"},
		{busy, "Its 1 worker is busy with 1 job: seq:"},
		{retrying, "It has failed 1 time; the next try is due in"},
		{push(`{"queue":"later","delay_s":7200}`), "It is due in 1 h 5"},
		{blocked, "It comes after 1 job: seq:"},
		{broken, "A job that it comes after is gone without being done"},
	} {
		b.open("/jobs/" + one.id)
		var why string
		b.run(chromedp.Text("#why", &why))
		if got := compact(why); !contains(got, one.want) {
			t.Errorf("the page says %q, want %q", got, one.want)
		}
	}
	api(t, broker, "POST", "/drain", "{}")
	b.open("/jobs/" + third)
	b.wants("The broker is draining: it hands out no job until that ends.")
	b.clean("reasons")
}
