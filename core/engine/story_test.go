package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/core/internal/store/storetest"
)

// A story is a short sequence of operations. After each of them, the recorder records the state that clients can see,
// and the commit that acknowledges it. After a crash, each thing must have its last acknowledged state or a later one.
type story struct {
	name string
	play func(*recorder)
}

var stories = []story{
	{"jobs come and go", func(w *recorder) {
		for i := range 4 {
			w.submit(&core.Job{Origin: core.Gearman, Body: fmt.Append(nil, "body ", i)})
		}
		w.flush()
		w.lease(core.HeldByConn)
		w.do(&core.Complete{Ref: w.ref(1)})
		w.lease(core.HeldByConn)
		w.do(&core.Fail{Ref: w.ref(2)})
		w.flush()
		w.submit(&core.Job{Origin: core.Gearman})
		w.do(&core.Cancel{Ref: w.ref(3)})
		w.flush()
		w.lease(core.HeldByConn)
		w.do(&core.Complete{Ref: w.ref(4)})
	}},
	{"a job fails, retries, dies and is put back", func(w *recorder) {
		w.submit(&core.Job{
			Origin: core.Faktory, ID: "jid", MaxFails: 2, Backoff: core.BackoffFaktory, Exhausted: core.ExhaustedBury,
			DeadFor: core.DeadFor,
		})
		w.flush()
		w.lease(core.HeldByWorker)
		w.flush()
		w.fail(1)
		w.flush()
		w.clock(time.Hour)
		w.lease(core.HeldByWorker)
		w.fail(1)
		w.flush()
		w.do(&core.Enqueue{Ref: w.ref(1)})
		w.flush()
		w.lease(core.HeldByWorker)
		w.do(&core.Complete{Ref: w.ref(1), Authority: core.ByLeased})
	}},
	{"outcomes and large bodies are kept", func(w *recorder) {
		large := []byte(strings.Repeat("large ", 20_000))
		for range 2 {
			w.submit(&core.Job{
				Origin: core.Workq, Body: large, LeaseFor: time.Minute, RetainUntil: w.clk.Now().Add(time.Hour),
				ExpiresAt: w.clk.Now().Add(time.Hour),
			})
		}
		w.flush()
		w.lease(core.HeldByNobody)
		w.do(&core.Complete{Ref: w.ref(1), Authority: core.ByAnyone, Result: large})
		w.flush()
		w.do(&core.Fail{Ref: w.ref(2), Authority: core.ByAnyone, Failure: &core.Failure{Data: large}})
		w.flush()
		w.clock(time.Hour)
	}},
	{"jobs wait for each other", func(w *recorder) {
		w.submit(&core.Job{Origin: core.Faktory})
		w.submit(&core.Job{Origin: core.Faktory, After: []uint64{1}})
		w.lease(core.HeldByWorker)
		w.submit(&core.Job{Origin: core.Faktory, Parent: 1})
		w.flush()
		w.do(&core.Complete{Ref: w.ref(1), Authority: core.ByLeased})
		w.flush()
		w.lease(core.HeldByWorker)
		w.do(&core.Complete{Ref: w.ref(3), Authority: core.ByLeased})
		w.submit(&core.Job{Origin: core.Faktory, After: []uint64{2}})
		w.flush()
		w.lease(core.HeldByWorker)
		w.fail(2)
		w.flush()
		w.do(&core.Enqueue{Ref: w.ref(4)})
	}},
	{"a batch runs its callbacks", func(w *recorder) {
		w.do(&core.OpenBatch{
			Complete: &core.Job{Queue: "callbacks", Origin: core.Faktory},
			Success:  &core.Job{Queue: "callbacks", Origin: core.Faktory},
		})
		w.submit(&core.Job{Origin: core.Faktory, Batch: 1})
		w.flush()
		w.do(&core.CloseBatch{Batch: 1})
		w.lease(core.HeldByWorker)
		w.do(&core.Complete{Ref: w.ref(4), Authority: core.ByLeased})
		w.flush()
		w.do(&core.Complete{Ref: w.ref(2), Authority: core.ByAnyone})
		w.flush()
		w.do(&core.Complete{Ref: w.ref(3), Authority: core.ByAnyone})
		w.flush()
		w.clock(time.Hour)
	}},
	{"commands of the administrator", func(w *recorder) {
		w.do(&core.CreateQueue{Queue: "q"})
		w.do(&core.SetQueueMax{Queue: "q", Max: core.QueueMax{Normal: 9}})
		w.submit(&core.Job{Origin: core.Gearman})
		w.flush()
		w.do(&core.PauseQueue{Queue: "q", Paused: true})
		w.do(&core.WriteMeta{Entries: []core.MetaEntry{{Name: "test/mark", Value: []byte("one")}}})
		w.flush()
		w.submit(&core.Job{Origin: core.Gearman})
		w.do(&core.PauseQueue{Queue: "q"})
		w.do(&core.WriteMeta{Entries: []core.MetaEntry{{Name: "test/mark"}}})
		w.flush()
		w.do(&core.Purge{Queue: "q", Drop: true})
	}},
}

// recorder plays a story on an engine with a disk of its own.
type recorder struct {
	*fixture
	client core.ClientID
	seen   map[string][]sight // observed states of each thing, the newest last
}

// sight is an observed state of a thing, and the commit that the reply depended on; zero: not acknowledged.
type sight struct {
	look   string
	commit core.Commit
}

// newRecorder opens an engine on disk.
func newRecorder(t *testing.T, disk *storetest.Disk, clk *coretest.Clock, change func(*engine.Options)) *recorder {
	t.Helper()
	w := &recorder{fixture: &fixture{t: t, clk: clk, fs: disk.FS()}, seen: map[string][]sight{}}
	w.fixture.open(change)
	w.client = w.fixture.client(core.Faktory)
	return w
}

func (w *recorder) ref(seq uint64) core.Ref { return core.Ref{Seq: seq} }

func (w *recorder) submit(j *core.Job) {
	j.Queue = "q"
	w.do(&core.Submit{Job: j})
}

func (w *recorder) lease(h core.Holder) {
	w.do(&core.Lease{Queues: []string{"q"}, Holder: h, Worker: "w"})
}

func (w *recorder) fail(seq uint64) {
	w.do(&core.Fail{Ref: w.ref(seq), Authority: core.ByLeased, Failure: &core.Failure{Type: "T", Message: "m"}})
}

func (w *recorder) flush() { w.Flush() }

func (w *recorder) clock(d time.Duration) {
	w.clk.Advance(d)
	w.Tick()
	w.look(0)
}

// do does one operation and then observes everything.
func (w *recorder) do(op core.Op) {
	commit := core.Commit(0)
	for _, r := range w.Do(w.client, []core.Op{op}, nil) {
		if r.Kind == core.Failed {
			commit = 0
			continue
		}
		commit = max(commit, r.Commit)
	}
	w.look(commit)
}

// look records changes since the last call. A leased job is recorded as ready, because leases need not survive a
// crash.
func (w *recorder) look(commit core.Commit) {
	for thing, look := range w.fixture.sights() {
		old := w.seen[thing]
		if len(old) == 0 {
			old = []sight{{look: "nothing"}}
		}
		if old[len(old)-1].look != look {
			old = append(old, sight{look, commit})
		}
		w.seen[thing] = old
	}
}

// sights returns the state of everything that a story knows of.
func (d *fixture) sights() map[string]string {
	all := map[string]string{
		"queue": "nothing", "mark": string(d.one(d.observer(), &core.ReadMeta{Name: "test/mark"}).Data),
	}
	if all["mark"] == "" {
		all["mark"] = "nothing"
	}
	for seq := uint64(1); seq < 10; seq++ {
		job, batch := fmt.Sprint("job ", seq), fmt.Sprint("batch ", seq)
		all[job], all[batch] = "nothing", "nothing"
		if i := d.one(d.observer(), &core.Inspect{Ref: core.Ref{Seq: seq}}).Info; i != nil {
			all[job] = jobLook(i)
		}
		if g := d.one(d.observer(), &core.InspectBatch{Batch: seq}).Batch; g != nil {
			all[batch] = fmt.Sprintf("%+v", *g)
		}
	}
	if r := d.one(d.observer(), &core.InspectQueue{Queue: "q"}); len(r.Queues) == 1 {
		if q := r.Queues[0]; q.Paused || q.Max != (core.QueueMax{}) {
			all["queue"] = fmt.Sprintf("paused %v, at most %d", q.Paused, q.Max.Normal)
		}
	}
	return all
}

func jobLook(i *core.JobInfo) string {
	state := i.State
	if state == core.Leased {
		state = core.Ready
	}
	look := fmt.Sprintf("%v, %d bytes, fails %d, broken %v", state, len(i.Job.Body), i.Fails, i.Broken)
	if i.Failure != nil {
		look += fmt.Sprintf(", failed %q with %d bytes", i.Failure.Message, len(i.Failure.Data))
	}
	if i.Outcome != nil {
		look += fmt.Sprintf(", ended %v with %d bytes", i.Outcome.Success, len(i.Outcome.Result))
	}
	return look
}

// compare returns the first thing whose state is neither the one acknowledged by a commit up to committed, nor a
// later one.
func (w *recorder) compare(d *fixture, committed core.Commit) error {
	now := d.sights()
	for thing, sights := range w.seen {
		promised := 0
		for i, s := range sights {
			if s.commit != 0 && s.commit <= committed {
				promised = i
			}
		}
		found := false
		for _, s := range sights[promised:] {
			found = found || s.look == now[thing]
		}
		if !found {
			return fmt.Errorf("%s is %q; it was promised by commit %d of %d to be %q; all that was seen: %v", thing,
				now[thing],
				sights[promised].commit, committed, sights[promised].look, sights)
		}
	}
	return nil
}
