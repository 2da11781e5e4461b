package gearman

import (
	"fmt"
	"testing"

	"broker/core"
)

// refusing returns a broker that rejects all operations.
func refusing(kind error) *fakeBroker {
	return &fakeBroker{do: func(op core.Op) []core.Reply {
		r := core.Reply{Kind: core.Failed, Err: fmt.Errorf("wrapped: %w", kind)}
		switch op := op.(type) {
		case *core.Submit:
			r.Tag = op.Tag
		case *core.Lease:
			r.Tag = op.Tag
		case *core.Sleep:
			r.Tag = op.Tag
		case *core.Complete:
			r.Tag = op.Tag
		case *core.Fail:
			r.Tag = op.Tag
		case *core.Report:
			r.Tag = op.Tag
		case *core.SendData:
			r.Tag = op.Tag
		case *core.Inspect:
			r.Tag = op.Tag
		case *core.ListQueues:
			r.Tag = op.Tag
		case *core.ListJobs:
			r.Tag = op.Tag
		case *core.CreateQueue:
			r.Tag = op.Tag
		case *core.LimitQueue:
			r.Tag = op.Tag
		case *core.Cancel:
			r.Tag = op.Tag
		default:
			return nil // has no reply
		}
		return []core.Reply{r}
	}}
}

func TestEveryRequestHasAnAnswerForARefusal(t *testing.T) {
	t.Parallel()
	const stopped = "ERR QUEUE_ERROR Server+has+stopped+taking+work\r\n"
	queueError := answer(errorRes, "QUEUE_ERROR", "Server has stopped taking work")
	for _, c := range []struct {
		name string
		in   []byte
		want []byte
	}{
		{"submit", request(submitJobBg, "f", "u", "x"), queueError},
		{"reduce", request(submitReduceJob, "f", "u", "r", "", "x"), queueError},
		{"epoch", request(submitJobEpoch, "f", "u", "1", "x"), queueError},
		{"complete", request(workComplete, "H:host:1", "x"), queueError},
		{"fail", request(workFail, "H:host:1"), queueError},
		{"exception", request(workException, "H:host:1", "x"), queueError},
		{"status of work", request(workStatus, "H:host:1", "1", "2"), queueError},
		{"data", request(workData, "H:host:1", "x"), queueError},
		{"warning", request(workWarning, "H:host:1", "x"), queueError},
		{"grab", request(grabJob), answer(noJob)},
		{"grab with unique", request(grabJobUniq), answer(noJob)},
		{"grab with all", request(grabJobAll), answer(noJob)},
		{"sleep", request(preSleep), nil},
		{"able", request(canDo, "f"), nil},
		{"unable", request(cantDo, "f"), nil},
		{"get status", request(getStatus, "H:host:1"), answer(statusRes, "H:host:1", "0", "0", "0", "0")},
		{"get status by unique", request(getStatusUnique, "u"), answer(statusResUnique, "u", "0", "0", "0", "0", "0")},
		{"status", []byte("status\n"), []byte(".\n")},
		{"create", []byte("create function f\n"), []byte(stopped)},
		{"maxqueue", []byte("maxqueue f 1\n"), []byte(stopped)},
		{"cancel", []byte("cancel job H:host:1\n"), []byte(stopped)},
		{"show jobs", []byte("show jobs\n"), []byte(".\n")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, conn := open(refusing(core.ErrStopped), testOptions())
			s.Feed(append(c.in, request(echoReq, "x")...))
			if got, want := conn.taken(), string(c.want)+string(answer(echoRes, "x")); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestRefusalsOfASubmission(t *testing.T) {
	t.Parallel()
	for _, row := range wireErrors {
		s, conn := open(refusing(row.kind), testOptions())
		s.Feed(request(submitJob, "f", "u", "x"))
		if got, want := conn.taken(), string(answer(errorRes, row.code, row.message)); got != want {
			t.Errorf("%v: got %q, want %q", row.kind, got, want)
		}
	}
}
