package gearman

import (
	"fmt"
	"testing"

	"broker/core"
	"broker/frontends/gearman/packet"
)

// refusing returns a broker that refuses all operations.
func refusing(kind error) *fakeBroker {
	return &fakeBroker{do: func(op core.Op) []core.Reply {
		if op.TagOf() == 0 {
			return nil // has no reply
		}
		return []core.Reply{{Kind: core.Failed, Tag: op.TagOf(), Err: fmt.Errorf("wrapped: %w", kind)}}
	}}
}

func TestEveryRequestHasAnAnswerForARefusal(t *testing.T) {
	t.Parallel()
	const stopped = "ERR QUEUE_ERROR Server+has+stopped+taking+work\r\n"
	queueError := answer(packet.Error, "QUEUE_ERROR", "Server has stopped taking work")
	for _, c := range []struct {
		name string
		in   []byte
		want []byte
	}{
		{"submit", request(packet.SubmitJobBg, "f", "u", "x"), queueError},
		{"reduce", request(packet.SubmitReduceJob, "f", "u", "r", "", "x"), queueError},
		{"epoch", request(packet.SubmitJobEpoch, "f", "u", "1", "x"), queueError},
		{"complete", request(packet.WorkComplete, "H:host:1", "x"), queueError},
		{"fail", request(packet.WorkFail, "H:host:1"), queueError},
		{"exception", request(packet.WorkException, "H:host:1", "x"), queueError},
		{"status of work", request(packet.WorkStatus, "H:host:1", "1", "2"), queueError},
		{"data", request(packet.WorkData, "H:host:1", "x"), queueError},
		{"warning", request(packet.WorkWarning, "H:host:1", "x"), queueError},
		{"grab", request(packet.GrabJob), answer(packet.NoJob)},
		{"grab with unique", request(packet.GrabJobUniq), answer(packet.NoJob)},
		{"grab with all", request(packet.GrabJobAll), answer(packet.NoJob)},
		{"sleep", request(packet.PreSleep), nil},
		{"register", request(packet.CanDo, "f"), nil},
		{"unregister", request(packet.CantDo, "f"), nil},
		{"get status", request(packet.GetStatus, "H:host:1"), answer(packet.StatusRes, "H:host:1", "0", "0", "0", "0")},
		{
			"get status by unique", request(packet.GetStatusUnique, "u"),
			answer(packet.StatusResUnique, "u", "0", "0", "0", "0", "0"),
		},
		{"status", []byte("status\n"), []byte(".\n")},
		{"create", []byte("create function f\n"), []byte(stopped)},
		{"maxqueue", []byte("maxqueue f 1\n"), []byte(stopped)},
		{"cancel", []byte("cancel job H:host:1\n"), []byte(stopped)},
		{"show jobs", []byte("show jobs\n"), []byte(".\n")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, conn := open(refusing(core.ErrStopped), testOptions())
			s.Feed(append(c.in, request(packet.EchoReq, "x")...))
			if got, want := conn.taken(), string(c.want)+string(answer(packet.EchoRes, "x")); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestRefusalsOfASubmission(t *testing.T) {
	t.Parallel()
	for kind, row := range wireErrors {
		s, conn := open(refusing(kind), testOptions())
		s.Feed(request(packet.SubmitJob, "f", "u", "x"))
		if got, want := conn.taken(), string(answer(packet.Error, row.code, row.message)); got != want {
			t.Errorf("%v: got %q, want %q", kind, got, want)
		}
	}
}
