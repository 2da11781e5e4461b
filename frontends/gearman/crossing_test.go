package gearman

import (
	"testing"

	"broker/core"
	"broker/frontends/frontendtest"
	"broker/frontends/gearman/packet"
)

// otherClient is a client of another protocol that calls the broker directly.
type otherClient struct {
	t      *testing.T
	broker core.Broker
	id     core.ClientID
}

func newStranger(t *testing.T, s *frontendtest.Stage, p core.Protocol) *otherClient {
	return &otherClient{t, s.Broker, s.Broker.Open(core.ClientOptions{Protocol: p, Wake: func() {}})}
}

// do applies one operation and returns its reply.
func (x *otherClient) do(op core.Op) core.Reply {
	x.t.Helper()
	replies := x.broker.Do(x.id, []core.Op{op}, nil)
	if len(replies) != 1 || replies[0].Kind == core.Failed {
		x.t.Fatalf("%T: %+v", op, replies)
	}
	return replies[0]
}

func setup(t *testing.T, change func(*Options)) *frontendtest.Stage {
	t.Helper()
	return frontendtest.Open(t, newMaker(change))
}

func TestFaktoryJobForAGearmanWorker(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	faktory := newStranger(t, s, core.Faktory)
	args := `[1, "two",{"x":null}]`
	faktory.do(&core.Submit{Job: &core.Job{
		ID: "jid1", Queue: "resize", Type: "ResizeJob", Body: []byte(args), Format: core.Args, Origin: core.Faktory,
		Attributes: []byte("r\x03red"), UniqueKey: "\x02uforged", Unique: core.UniqueRefuse,
		MaxFails: 3, Backoff: core.BackoffFaktory, Exhausted: core.ExhaustedBury,
	}})
	w := s.Dial("worker")
	w.SendBytes(request(packet.CanDo, "resize"))
	w.SendBytes(request(packet.GrabJobAll))
	w.WantBytes(answer(packet.JobAssignUniq, "H:host:1", "resize", "jid1", args))
	w.SendBytes(request(packet.WorkFail, "H:host:1"))
	w.WantSilence()
	info := faktory.do(&core.Inspect{Ref: core.Ref{ID: "jid1"}}).Info
	if info.State != core.Retrying || info.Fails != 1 {
		t.Errorf("after WORK_FAIL: %v with %d fails, want the retry of its own protocol", info.State, info.Fails)
	}
	w.Send("status\r\nprioritystatus\r\nshow jobs\r\nshow unique jobs\r\n")
	w.Want("resize\t1\t0\t1\n.\nresize\t0\t1\t0\t1\n.\nH:host:1\t1\t0\t1\n.\njid1\n.\n")
}

func TestNULInTheIDOfAJobDoesNotEndItsField(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	newStranger(t, s, core.Faktory).do(&core.Submit{Job: &core.Job{
		ID: "jid\x00forged", Queue: "q", Body: []byte("body"), Origin: core.Faktory, MaxFails: 1,
	}})
	w := s.Dial("worker")
	w.SendBytes([]byte(join(request(packet.CanDo, "q"), request(packet.GrabJobUniq))))
	w.WantBytes(answer(packet.JobAssignUniq, "H:host:1", "q", "jid%00forged", "body"))
}

func TestExceptionOfAGearmanWorkerInOtherProtocols(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	faktory := newStranger(t, s, core.Faktory)
	faktory.do(&core.Submit{Job: &core.Job{ID: "jid1", Queue: "q", Origin: core.Faktory, MaxFails: 3}})
	w := s.Dial("worker")
	w.SendBytes([]byte(join(request(packet.CanDo, "q"), request(packet.GrabJob))))
	w.WantBytes(answer(packet.JobAssign, "H:host:1", "q", ""))
	w.SendBytes(request(packet.WorkException, "H:host:1", "disk on fire"))
	w.WantSilence()
	f := faktory.do(&core.Inspect{Ref: core.Ref{ID: "jid1"}}).Info.Failure
	if f == nil || f.Type == "" || f.Message != "disk on fire" || !f.Exception {
		t.Errorf("failure %+v", f)
	}
}

func TestTooLargeResultFailsTheJobInOtherProtocols(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	faktory := newStranger(t, s, core.Faktory)
	faktory.do(&core.Submit{Job: &core.Job{
		ID: "jid1", Queue: "q", Origin: core.Faktory, MaxFails: 3, Backoff: core.BackoffFaktory,
	}})
	w := s.Dial("worker")
	w.SendBytes([]byte(join(request(packet.CanDo, "q"), request(packet.GrabJob))))
	w.WantBytes(answer(packet.JobAssign, "H:host:1", "q", ""))
	w.SendBytes(append(header(packet.RequestMagic, uint32(packet.WorkComplete), 1<<30), "H:host:1\x00"...))
	w.WantBytes(answer(packet.Error, "ARGUMENT_TOO_LARGE", "Result too large"))
	w.WantClosed()
	info := faktory.do(&core.Inspect{Ref: core.Ref{ID: "jid1"}}).Info
	if f := info.Failure; info.State != core.Retrying || f == nil || f.Type != "ResultTooLarge" || f.Message == "" {
		t.Errorf("%v with failure %+v, want the retry of its own protocol", info.State, f)
	}
}

func TestGearmanClientOfAFaktoryWorker(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	faktory := newStranger(t, s, core.Faktory)
	plain, curious := s.Dial("plain"), s.Dial("curious")
	curious.SendBytes(request(packet.OptionReq, "exceptions"))
	curious.WantBytes(answer(packet.OptionRes, "exceptions"))
	for _, c := range []*frontendtest.Client{plain, curious} {
		c.SendBytes(request(packet.SubmitJob, "f", "u", "x"))
		c.WantBytes(answer(packet.JobCreated, "H:host:1"))
	}
	lease := func() core.Ref {
		r := faktory.do(&core.Lease{Queues: []string{"f"}, Holder: core.HeldByWorker, Worker: "wid"})
		return core.Ref{ID: r.Job.Identity()}
	}
	ref := lease()
	faktory.do(&core.Report{Ref: ref, Authority: core.ByLeased, Progress: core.Progress{Num: 40, Den: 100}})
	for _, c := range []*frontendtest.Client{plain, curious} {
		c.WantBytes(answer(packet.WorkStatus, "H:host:1", "40", "100"))
	}
	faktory.do(&core.Fail{
		Ref: ref, Authority: core.ByLeased, Failure: &core.Failure{Type: "IOError", Message: "no disk"},
	})
	plain.WantBytes(answer(packet.WorkFail, "H:host:1"))
	curious.WantBytes(answer(packet.WorkException, "H:host:1", "IOError: no disk"))

	plain.SendBytes(request(packet.SubmitJob, "f", "u", "x"))
	plain.WantBytes(answer(packet.JobCreated, "H:host:2"))
	faktory.do(&core.Complete{Ref: lease(), Authority: core.ByLeased, Result: []byte("result")})
	plain.WantBytes(answer(packet.WorkComplete, "H:host:2", "result"))
}

func TestFailOfAWorkqWorkerIsAFailure(t *testing.T) {
	t.Parallel()
	s := setup(t, func(o *Options) { o.ExceptionsForAll = true })
	workq := newStranger(t, s, core.Workq)
	c := s.Dial("client")
	c.SendBytes(request(packet.SubmitJob, "f", "", "x"))
	c.WantBytes(answer(packet.JobCreated, "H:host:1"))
	r := workq.do(&core.Lease{Queues: []string{"f"}, Holder: core.HeldByNobody})
	workq.do(&core.Fail{
		Ref: core.Ref{Seq: r.Seq}, Authority: core.ByAnyone, Failure: &core.Failure{Message: "no", Data: []byte("no")},
	})
	c.WantBytes(answer(packet.WorkFail, "H:host:1"))
}

func TestFinishedJobWithAKeptOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	workq := newStranger(t, s, core.Workq)
	workq.do(&core.Submit{Job: &core.Job{
		ID: "6ba7b810-9dad-41d1-80b4-00c04fd430c4", Queue: "f", Origin: core.Workq, RetainFor: 1 << 40,
	}})
	w := s.Dial("worker")
	w.SendBytes([]byte(join(request(packet.CanDo, "f"), request(packet.GrabJobUniq))))
	w.WantBytes(answer(packet.JobAssignUniq, "H:host:1", "f", "6ba7b810-9dad-41d1-80b4-00c04fd430c4", ""))
	w.SendBytes([]byte(join(request(packet.WorkComplete, "H:host:1", "kept"), request(packet.GetStatus, "H:host:1"))))
	w.WantBytes(answer(packet.StatusRes, "H:host:1", "0", "0", "0", "0"))
	w.Send("status\r\nshow jobs\r\n")
	w.Want("f\t0\t0\t1\n.\n.\n")
	info := workq.do(&core.Inspect{Ref: core.Ref{Seq: 1}}).Info
	if info.State != core.Done || info.Outcome == nil || string(info.Outcome.Result) != "kept" {
		t.Errorf("the outcome is %+v", info)
	}
}

func TestRouteChangesTheQueue(t *testing.T) {
	t.Parallel()
	s := setup(t, func(o *Options) {
		o.Namespace = "g."
		o.Route = func(queue, typ string) (string, string) {
			if queue == "ResizeImage" || queue == "CropImage" {
				return "default", typ
			}
			return queue, typ
		}
	})
	c := s.Dial("client")
	c.SendBytes([]byte(join(
		request(packet.SubmitJobBg, "ResizeImage", "u", "1"), request(packet.SubmitJobBg, "CropImage", "u", "2"),
		request(packet.SubmitJobBg, "ResizeImage", "u", "3"), request(packet.SubmitJobBg, "other", "u", "4"))))
	c.WantBytes([]byte(join(
		answer(packet.JobCreated, "H:host:1"), answer(packet.JobCreated, "H:host:2"),
		answer(packet.JobCreated, "H:host:1"),
		answer(packet.JobCreated, "H:host:3"))))
	faktory := newStranger(t, s, core.Faktory)
	for _, want := range []struct{ queue, typ string }{
		{"default", "ResizeImage"}, {"default", "CropImage"}, {"g.other", "other"},
	} {
		j := faktory.do(&core.Lease{Queues: []string{"default", "g.other"}, Holder: core.HeldByWorker, Worker: "w"}).Job
		if j == nil || j.Queue != want.queue || j.Type != want.typ {
			t.Errorf("got %+v, want %+v", j, want)
		}
	}
}

func TestShutdownIfEnabled(t *testing.T) {
	t.Parallel()
	var called []bool
	s := setup(t, func(o *Options) {
		o.AllowShutdown = true
		o.Shutdown = func(graceful bool) { called = append(called, graceful) }
	})
	c := s.Dial("operator")
	c.Send("version\r\nshutdown\r\nSHUTDOWN graceful\r\n")
	c.Want("OK 1.1.20\nOK\r\nOK\r\n")
	if len(called) != 2 || called[0] || !called[1] {
		t.Errorf("called with %v", called)
	}
}
