package workq

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

// otherClient is a client of another protocol that calls the broker directly.
type otherClient struct {
	t      *testing.T
	broker core.Broker
	client core.ClientID
}

func newForeign(t *testing.T, s *frontendtest.Stage, p core.Protocol) otherClient {
	t.Helper()
	return otherClient{t, s.Broker, s.Broker.Open(core.ClientOptions{Protocol: p, Wake: func() {}})}
}

// do applies one operation and returns its reply.
func (f otherClient) do(op core.Op) core.Reply {
	f.t.Helper()
	replies := f.broker.Do(f.client, []core.Op{op}, nil)
	if len(replies) != 1 || replies[0].Kind == core.Failed {
		f.t.Fatalf("%T: got %+v", op, replies)
	}
	return replies[0]
}

func (f otherClient) submit(job core.Job) (seq uint64) {
	f.t.Helper()
	return f.do(&core.Submit{Tag: 1, Job: &job}).Seq
}

func TestJobsOfOtherProtocolsHaveTheirAliasAsID(t *testing.T) {
	t.Parallel()
	s := setup(t)
	gearman, faktory := newForeign(t, s, core.Gearman), newForeign(t, s, core.Faktory)
	c := s.Dial("client")

	seq := gearman.submit(core.Job{Origin: core.Gearman, Queue: "q", Body: []byte("raw")})
	c.Send("lease q 0\r\n")
	c.Want(fmt.Sprintf("+OK 1\r\n%s q 1800000 3\r\nraw\r\n", core.Alias(seq)))
	c.Send("inspect job " + strings.ToUpper(core.Alias(seq)) + "\r\n")
	c.Want("+OK 1\r\n" + core.Alias(seq) + " 12\r\nname q\r\nttr 0\r\nttl 0\r\npayload-size 3\r\npayload raw\r\n" +
		"max-attempts 0\r\nattempts 1\r\nmax-fails 0\r\nfails 0\r\npriority 0\r\nstate 4\r\ncreated 2030-01-01T00:00:00Z\r\n")
	c.Send("complete " + core.Alias(seq) + " 2\r\nok\r\nresult " + core.Alias(seq) + " 0\r\n")
	c.Want("+OK\r\n-NOT-FOUND\r\n")

	// Args are the JSON array, byte for byte; the jid is not a UUIDv4.
	seq = faktory.submit(core.Job{
		Origin: core.Faktory, ID: "4b3ab2c7e1d2d9cd8f3a9c33", Queue: "q", Type: "Resize", Format: core.Args,
		Body: []byte(`[1, "two" ]`), LeaseFor: time.Minute, MaxFails: 26, Backoff: core.BackoffFaktory,
		Exhausted: core.ExhaustedBury, LeaseEnd: core.LeaseEndFail,
	})
	c.Send("lease q 0\r\n")
	c.Want(fmt.Sprintf("+OK 1\r\n%s q 60000 11\r\n[1, \"two\" ]\r\n", core.Alias(seq)))

	// The job keeps its retry policy: a fail is retried, with the worker's text as the message.
	c.Send("fail " + core.Alias(seq) + " 8\r\nbad luck\r\ninspect job " + core.Alias(seq) + "\r\n")
	c.Want("+OK\r\n+OK 1\r\n" + core.Alias(seq) + " 12\r\nname q\r\nttr 60000\r\nttl 0\r\npayload-size 11\r\n" +
		"payload [1, \"two\" ]\r\nmax-attempts 0\r\nattempts 1\r\nmax-fails 26\r\nfails 1\r\npriority 0\r\nstate 3\r\n" +
		"created 2030-01-01T00:00:00Z\r\n")
	info := faktory.do(&core.Inspect{Ref: core.Ref{Seq: seq}}).Info
	if info.State != core.Retrying || info.Failure == nil || info.Failure.Message != "bad luck" {
		t.Errorf("after a fail: %v, %+v", info.State, info.Failure)
	}
	c.Send("delete " + core.Alias(seq) + "\r\n")
	c.Want("+OK\r\n")

	// A UUIDv4 is the id in Workq, too; the alias of another job is in use.
	faktory.submit(core.Job{Origin: core.Faktory, ID: idOf(1), Queue: "q", Format: core.Args, Body: []byte("[]")})
	seq = gearman.submit(core.Job{Origin: core.Gearman, Queue: "q"})
	c.Send("lease q 0\r\nadd " + core.Alias(seq) + " q 1 1000 0\r\n\r\n")
	c.Want("+OK 1\r\n" + idOf(1) + " q 1800000 2\r\n[]\r\n-CLIENT-ERROR Duplicate job\r\n")
}

func TestOutcomesOfOtherWorkers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		finish func(otherClient, core.Ref)
		want   string
	}{
		{"done, with data before the end", func(f otherClient, ref core.Ref) {
			f.do(&core.SendData{Ref: ref, Authority: core.ByLeased, Data: []byte("one,")})
			f.do(&core.SendData{Ref: ref, Authority: core.ByLeased, Data: []byte("two,")})
			f.do(&core.SendData{Ref: ref, Authority: core.ByLeased, Data: []byte("not this"), Warning: true})
			f.do(&core.Complete{Ref: ref, Authority: core.ByLeased, Result: []byte("end")})
		}, "1 11\r\none,two,end\r\n"},
		{"done, without a result", func(f otherClient, ref core.Ref) {
			f.do(&core.Complete{Ref: ref, Authority: core.ByLeased})
		}, "1 0\r\n\r\n"},
		{"failed, with a message", func(f otherClient, ref core.Ref) {
			f.do(&core.Fail{Ref: ref, Authority: core.ByLeased, Failure: &core.Failure{Type: "E", Message: "why"}})
		}, "0 3\r\nwhy\r\n"},
		{"failed, with an exception's bytes", func(f otherClient, ref core.Ref) {
			f.do(&core.Fail{
				Ref: ref, Authority: core.ByLeased, Failure: &core.Failure{Exception: true, Data: []byte("raw")},
			})
		}, "0 3\r\nraw\r\n"},
		{"failed, without a word", func(f otherClient, ref core.Ref) {
			f.do(&core.Fail{Ref: ref, Authority: core.ByLeased})
		}, "0 0\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			client, waiter := s.Dial("client"), s.Dial("waiter")
			client.Send("run " + idOf(1) + " q 1000 5000 1\r\n1\r\n")
			waiter.Send("result " + idOf(1) + " 5000\r\n")
			worker := newForeign(t, s, core.Faktory)
			job := worker.do(&core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w"})
			c.finish(worker, core.Ref{Seq: job.Seq})
			client.Want("+OK 1\r\n" + idOf(1) + " " + c.want)
			waiter.Want("+OK 1\r\n" + idOf(1) + " " + c.want)
		})
	}
}

func TestNamespaceSeparatesNames(t *testing.T) {
	t.Parallel()
	s := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		return New(access.Unrestricted(b, core.Workq), Options{Options: frontends.Options{Namespace: "w."}})
	})
	gearman := newForeign(t, s, core.Gearman)
	apart := gearman.submit(core.Job{Origin: core.Gearman, Queue: "q"})
	c := s.Dial("client")
	c.Send("inspect queue q\r\ninspect queues 0 100\r\nlease q 0\r\ninspect job " + core.Alias(apart) + "\r\n")
	c.Want("-NOT-FOUND\r\n+OK 0\r\n-TIMEOUT\r\n-NOT-FOUND\r\n")
	c.Send("add " + idOf(1) + " q 1000 60000 1\r\n1\r\ninspect queue q\r\ninspect queues 0 100\r\nlease p q 0\r\n")
	c.Want("+OK\r\n+OK 1\r\nq 2\r\nready-len 1\r\nscheduled-len 0\r\n+OK 1\r\nq 2\r\nready-len 1\r\nscheduled-len 0\r\n" +
		"+OK 1\r\n" + idOf(1) + " q 1000 1\r\n1\r\n")
	c.Send("inspect job " + idOf(1) + "\r\n")
	if block := c.ReadUntil("state 4\r\n"); !strings.Contains(block, "\r\nname q\r\n") {
		t.Errorf("got %q", block)
	}
	info := gearman.do(&core.Inspect{Ref: core.Ref{ID: idOf(1)}}).Info
	if info.Job.Queue != "w.q" || info.Job.Type != "q" {
		t.Errorf("in the core it is queue %q, type %q", info.Job.Queue, info.Job.Type)
	}
	c.ReadUntil("Z\r\n")
}

func TestRoutesRewriteAtSubmission(t *testing.T) {
	t.Parallel()
	route := func(queue, typ string) (string, string) {
		if queue == "ResizeImage" {
			return "default", "Image::" + typ
		}
		return queue, typ
	}
	s := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		return New(access.Unrestricted(b, core.Workq), Options{
			Options: frontends.Options{Namespace: "w.", Route: route},
		})
	})
	c := s.Dial("client")
	for n, want := range []struct{ said, queue, typ string }{
		{"ResizeImage 1000 60000 0", "default", "Image::ResizeImage"},
		{"ResizeImage 1000 60000 0 -type=Shrink", "default", "Image::Shrink"},
		{"other 1000 60000 0", "w.other", "other"},
		{"other 1000 60000 0 -type=Some", "w.other", "Some"},
	} {
		c.Send("add " + idOf(n) + " " + want.said + "\r\n\r\n")
		c.Want("+OK\r\n")
		job := newForeign(t, s, core.Faktory).do(&core.Inspect{Ref: core.Ref{ID: idOf(n)}}).Info.Job
		if job.Queue != want.queue || job.Type != want.typ {
			t.Errorf("%s: queue %q, type %q", want.said, job.Queue, job.Type)
		}
	}
}

func TestLeaseChoosesAmongNamesWithEqualChances(t *testing.T) {
	t.Parallel()
	s := frontendtest.Open(t, plain, frontendtest.InMemory)
	c := s.Dial("client")
	const rounds = 600
	var adds strings.Builder
	for n := range rounds {
		for q := range 3 {
			fmt.Fprintf(&adds, "add %s q%d 1000 60000 0\r\n\r\n", idOf(3*n+q), q)
		}
	}
	c.SendIn(1<<20, []byte(adds.String()))
	c.Want(strings.Repeat(okLine, 3*rounds))
	counts := map[string]int{}
	for range rounds {
		c.Send("lease q0 q1 empty q2 q1 0\r\n")
		c.Want("+OK 1\r\n")
		counts[strings.Fields(c.ReadUntil("\r\n\r\n"))[1]]++
	}
	for q, n := range counts {
		if n < rounds/3-80 || n > rounds/3+80 {
			t.Errorf("%s was chosen %d times of %d", q, n, rounds)
		}
	}
	if len(counts) != 3 {
		t.Errorf("chosen: %v", counts)
	}
}

func TestFullQueueIsRefused(t *testing.T) {
	t.Parallel()
	s := setup(t)
	f := newForeign(t, s, core.Gearman)
	f.do(&core.CreateQueue{Queue: "q"})
	f.do(&core.SetQueueMax{Queue: "q", Max: core.QueueMax{High: 1, Normal: 1, Low: 1}})
	c := s.Dial("client")
	c.Send("add " + idOf(1) + " q 1000 60000 0\r\n\r\nadd " + idOf(2) + " q 1000 60000 0\r\n\r\n")
	c.Want("+OK\r\n-SERVER-ERROR Queue full\r\n")
}

func TestUndeliveredJobIsReleased(t *testing.T) {
	t.Parallel()
	s := frontendtest.Open(t, plain, frontendtest.NeverCommits)
	worker, other := s.Dial("worker"), s.Dial("other")
	worker.Send("lease q 0\r\nadd " + idOf(1) + " q 1000 60000 1\r\n1\r\nlease q 0\r\n")
	worker.Want("-TIMEOUT\r\n") // what follows is held back with the add
	other.Send("lease q 0\r\n")
	other.Want("-TIMEOUT\r\n")
	worker.Hangup()
	other.Send("lease q 0\r\n")
	other.Want("+OK 1\r\n" + idOf(1) + " q 1000 1\r\n1\r\n")
	other.Hangup() // the job was sent, so the client is gone together with the job
	if got := newForeign(t, s,
		core.Gearman).do(&core.Inspect{Ref: core.Ref{ID: idOf(1)}}).Info; got.State != core.Leased ||
		got.Attempts != 1 {
		t.Errorf("the job is %v after %d attempts, want leased after 1", got.State, got.Attempts)
	}
}
