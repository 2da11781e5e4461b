package machine

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"broker/core"
)

// rig is a machine whose commits the test makes durable itself.
type rig struct {
	t      *testing.T
	m      *Machine
	now    core.Instant
	sealed Sealed
}

func newRig(t *testing.T) *rig {
	t.Helper()
	now := core.InstantOf(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	r := &rig{t: t, now: now, m: New(Options{
		Persist: true, Await: true, DefaultLease: time.Minute, CacheBytes: 1 << 20, Wakeup: -1,
		Random: rand.New(rand.NewPCG(1, 1)), StartedAt: now,
	})}
	r.m.Restored()
	return r
}

func (r *rig) client(p core.Protocol) core.ClientID {
	return r.m.OpenClient(r.now, core.ClientOptions{Protocol: p})
}

// do applies one operation and returns all replies that wait for the client.
func (r *rig) do(c core.ClientID, op core.Op) []core.Reply {
	r.t.Helper()
	r.m.Apply(r.now, c, []core.Op{op})
	if err := r.m.Check(); err != nil {
		r.t.Fatal(err)
	}
	return r.m.Take(c, nil)
}

// one applies an operation that is answered once.
func (r *rig) one(c core.ClientID, op core.Op) core.Reply {
	r.t.Helper()
	replies := r.do(c, op)
	if len(replies) != 1 {
		r.t.Fatalf("%T: %d replies, want 1: %.1000v", op, len(replies), replies)
	}
	return replies[0]
}

func (r *rig) submit(c core.ClientID, j *core.Job) uint64 {
	r.t.Helper()
	reply := r.one(c, &core.Submit{Job: j})
	if reply.Kind != core.Submitted {
		r.t.Fatalf("submit: %+v", reply)
	}
	return reply.Seq
}

// flush seals the open batch and reports it durable.
func (r *rig) flush() {
	r.m.Seal(&r.sealed)
	r.m.Committed(&r.sealed)
}

// TestEveryReplyWaitsForTheCommitOfItsContent seals a change, and lets another client send requests while the commit is
// being written: each reply must depend on the commit, and on nothing once the commit is durable.
func TestEveryReplyWaitsForTheCommitOfItsContent(t *testing.T) {
	t.Parallel()
	kept := func() *core.Job {
		return &core.Job{
			ID: "the job", Queue: "q", Origin: core.Workq, RetainFor: time.Hour, MaxFails: 1,
			Exhausted: core.ExhaustedBury,
		}
	}
	ref := core.Ref{ID: "the job"}
	finish := func(r *rig, c core.ClientID) { r.one(c, &core.Complete{Ref: ref, Authority: core.ByAnyone}) }
	remove := func(r *rig, c core.ClientID) { r.one(c, &core.Cancel{Ref: ref}) }
	var number uint64
	for _, c := range []struct {
		name   string
		change func(r *rig, c core.ClientID)
		read   func() core.Op
	}{
		{"await of a kept outcome", finish, func() core.Op { return &core.Await{Ref: ref} }},
		{"await of a dead job", func(r *rig, c core.ClientID) {
			r.one(c, &core.Fail{Ref: ref, Authority: core.ByAnyone})
		}, func() core.Op { return &core.Await{Ref: ref} }},
		{"await of a job that is gone", remove, func() core.Op { return &core.Await{Ref: ref} }},
		{"inspect", finish, func() core.Op { return &core.Inspect{Ref: ref} }},
		{"inspect of a job that is gone", remove, func() core.Op { return &core.Inspect{Ref: ref} }},
		{"list of jobs", finish, func() core.Op { return &core.ListJobs{} }},
		{"list that no longer has the job", remove, func() core.Op {
			return &core.ListJobs{Queue: "q", State: core.Ready}
		}},
		{"complete of a finished job", finish, func() core.Op {
			return &core.Complete{Ref: ref, Authority: core.ByAnyone}
		}},
		{"fail of a job that is gone", remove, func() core.Op {
			return &core.Fail{Ref: ref, Authority: core.ByAnyone}
		}},
		{"progress of a job that is not leased", finish, func() core.Op {
			return &core.Report{Ref: ref, Authority: core.ByLeased}
		}},
		{"data of a finished job", finish, func() core.Op {
			return &core.SendData{Ref: ref, Authority: core.ByAnyone}
		}},
		{"release of a finished job", finish, func() core.Op { return &core.Release{Ref: ref} }},
		{"cancel of a job that is gone", remove, func() core.Op { return &core.Cancel{Ref: ref} }},
		{"enqueue of a finished job", finish, func() core.Op { return &core.Enqueue{Ref: ref} }},
		{"bury of a finished job", finish, func() core.Op { return &core.Bury{Ref: ref} }},
		{"inspect of a job that waits for one less", func(r *rig, c core.ClientID) {
			var after []uint64
			for range 3 {
				after = append(after, r.submit(c, &core.Job{Queue: "q", Origin: core.Workq}))
			}
			number = r.submit(c, &core.Job{Queue: "q", Origin: core.Workq, After: after})
			r.flush()
			r.one(c, &core.Complete{Ref: core.Ref{Seq: after[1]}, Authority: core.ByAnyone})
		}, func() core.Op { return &core.Inspect{Ref: core.Ref{Seq: number}} }},
		{"submission of a duplicate", finish, func() core.Op { return &core.Submit{Job: kept()} }},
		{"submission that coalesces", func(r *rig, c core.ClientID) {
			r.submit(c, &core.Job{Queue: "q", Origin: core.Gearman, Unique: core.UniqueCoalesce, UniqueKey: "k"})
		}, func() core.Op {
			return &core.Submit{Job: &core.Job{
				Queue: "q", Origin: core.Gearman, Unique: core.UniqueCoalesce, UniqueKey: "k",
			}}
		}},
		{"foreground submission that coalesces", func(r *rig, c core.ClientID) {
			r.submit(c, &core.Job{Queue: "q", Origin: core.Gearman, Unique: core.UniqueCoalesce, UniqueKey: "k"})
		}, func() core.Op {
			return &core.Submit{Watch: core.WatchStream, Job: &core.Job{
				Queue: "q", Origin: core.Gearman, Unique: core.UniqueCoalesce, UniqueKey: "k", Ephemeral: true,
			}}
		}},
		{"submission whose key is taken", func(r *rig, c core.ClientID) {
			r.submit(c, &core.Job{Queue: "q", Origin: core.Faktory, Unique: core.UniqueRefuse, UniqueKey: "k"})
		}, func() core.Op {
			return &core.Submit{Job: &core.Job{
				Queue: "q", Origin: core.Faktory, Unique: core.UniqueRefuse, UniqueKey: "k",
			}}
		}},
		{"batch", func(r *rig, c core.ClientID) {
			number = r.one(c, &core.OpenBatch{}).Seq
		}, func() core.Op { return &core.InspectBatch{Batch: number} }},
		{"batch that is gone", func(r *rig, c core.ClientID) {
			number = r.one(c, &core.OpenBatch{}).Seq
			r.flush()
			r.one(c, &core.PurgeBatches{})
		}, func() core.Op { return &core.InspectBatch{Batch: number} }},
		{"submission into a batch that is closed", func(r *rig, c core.ClientID) {
			number = r.one(c, &core.OpenBatch{}).Seq
			r.one(c, &core.CloseBatch{Batch: number})
		}, func() core.Op { return &core.Submit{Job: &core.Job{Queue: "q", Origin: core.Faktory, Batch: number}} }},
		{"meta entry", func(r *rig, c core.ClientID) {
			r.one(c, &core.WriteMeta{Entries: []core.MetaEntry{{Name: "n", Value: []byte("v")}}})
		}, func() core.Op { return &core.ReadMeta{Name: "n"} }},
		{"queue", func(r *rig, c core.ClientID) {
			r.one(c, &core.PauseQueue{Queue: "q", Paused: true})
		}, func() core.Op { return &core.InspectQueue{Queue: "q"} }},
		{"list of queues", func(r *rig, c core.ClientID) {
			r.one(c, &core.PauseQueue{Queue: "q", Paused: true})
		}, func() core.Op { return &core.ListQueues{} }},
		{"queue that is gone", func(r *rig, c core.ClientID) {
			r.one(c, &core.DropQueue{Queue: "q"})
		}, func() core.Op { return &core.InspectQueue{Queue: "q"} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			one, other := r.client(core.Workq), r.client(core.Workq)
			r.submit(one, kept())
			r.flush()
			c.change(r, one)
			commit := r.m.Open()
			if got := r.one(other, c.read()).Commit; got != commit {
				t.Errorf("before the commit is sealed the reply depends on %d, want %d", got, commit)
			}
			r.m.Seal(&r.sealed)
			if got := r.one(other, c.read()).Commit; got != commit {
				t.Errorf("while commit %d is written the reply depends on %d", commit, got)
			}
			r.m.Committed(&r.sealed)
			if reply := r.one(other, c.read()); reply.Commit != 0 && reply.Commit != r.m.Open() {
				t.Errorf("once commit %d is durable the reply depends on %d", commit, reply.Commit)
			}
		})
	}
}

// TestProgressIsSentOnceItIsDurable has two clients that watch a stored job.
func TestProgressIsSentOnceItIsDurable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	follower, other, worker := r.client(core.Gearman), r.client(core.Gearman), r.client(core.Faktory)
	job := core.Job{Queue: "q", Origin: core.Gearman, Unique: core.UniqueCoalesce, UniqueKey: "k", Ephemeral: true}
	first, second := job, job
	second.Ephemeral = false
	r.one(follower, &core.Submit{Tag: 1, Watch: core.WatchStream, Job: &first})
	r.one(other, &core.Submit{Job: &second}) // now it is stored
	seq := r.one(worker, &core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w"}).Seq
	r.one(worker,
		&core.Report{Ref: core.Ref{Seq: seq}, Authority: core.ByLeased, Progress: core.Progress{Num: 1, Den: 2}})
	if got := r.m.Take(follower, nil); len(got) != 1 || got[0].Kind != core.Progressed || got[0].Commit != r.m.Open() {
		t.Errorf("the follower gets %+v, want progress that depends on commit %d", got, r.m.Open())
	}
}

// TestClientIsWokenByTheCommitItsReplyDependsOn sends a request during a commit, so that the reply depends on the
// commit in flight.
func TestClientIsWokenByTheCommitItsReplyDependsOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	one, other := r.client(core.Workq), r.client(core.Workq)
	seq := r.submit(one, &core.Job{Queue: "q", Origin: core.Workq})
	r.m.Seal(&r.sealed)
	r.one(other, &core.Inspect{Ref: core.Ref{Seq: seq}})
	r.submit(other, &core.Job{Queue: "q", Origin: core.Workq}) // depends on the open batch
	r.one(other, &core.Inspect{Ref: core.Ref{Seq: seq}})
	r.m.Committed(&r.sealed)
	woken := map[uint32]int{}
	for _, slot := range r.sealed.Waiters {
		woken[slot]++
	}
	if woken[Slot(one)] != 1 || woken[Slot(other)] != 1 {
		t.Errorf("clients woken: %v, want each once", woken)
	}
	r.m.Seal(&r.sealed)
	if len(r.sealed.Waiters) != 1 || r.sealed.Waiters[0] != Slot(other) {
		t.Errorf("the next commit wakes %v, want the other client alone", r.sealed.Waiters)
	}
}

// TestReplyAboutAnUnknownJobDoesNotWait runs without a change in progress.
func TestReplyAboutAnUnknownJobDoesNotWait(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.client(core.Workq)
	r.flush()
	got := r.one(c, &core.Inspect{Ref: core.Ref{ID: "never submitted"}})
	if !errors.Is(got.Err, core.ErrNotFound) || got.Commit != 0 {
		t.Errorf("%+v", got)
	}
}
