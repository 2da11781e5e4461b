package crossprotocol

import (
	"fmt"
	"testing"

	"broker/frontends/frontendtest"
)

// A batch whose only job is cancelled with another protocol runs both callbacks, one after the other, like an empty
// batch.
func TestBatchWithoutItsCancelledJobRunsBothCallbacks(t *testing.T) {
	t.Parallel()
	e := newEnv(t, frontendtest.InMemory)
	status := faktoryBatch(e, jobTimes{ttr, ttl})
	wq := e.dial(e.workq)
	wq.Send("delete " + id + "\r\n")
	wq.Want("+OK\r\n")
	f := e.dialFaktory("callbacks")
	for _, step := range []struct{ status, callback string }{
		{"BATCH: pending 0, failed 0, complete runs", "C"},
		{"BATCH: pending 0, failed 0, complete runs, success runs", "S"},
	} {
		if got := status(); got != step.status {
			t.Errorf("status %q, not %q", got, step.status)
		}
		f.Send("FETCH callbacks\r\n")
		var job struct{ Jid, Jobtype string }
		e.object(f, &job)
		if job.Jobtype != step.callback {
			t.Errorf("callback %q, not %q", job.Jobtype, step.callback)
		}
		f.Send(fmt.Sprintf("ACK {\"jid\":%q}\r\n", job.Jid))
		f.Want("+OK\r\n")
	}
}
