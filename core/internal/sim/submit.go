package sim

import (
	"cmp"
	"fmt"
	"time"

	"broker/core"
)

// style is how the clients of a protocol use the core.
type style struct {
	job       func(*world, *core.Submit)
	holder    core.Holder
	authority core.FinishAuthority
}

// styles are the styles of the simulated clients. Clients of the other protocols use one of them.
var styles = map[core.Protocol]style{
	core.Workq:   {job: (*world).workqJob, holder: core.HeldByNobody, authority: core.ByAnyone},
	core.Gearman: {job: (*world).gearmanJob, holder: core.HeldByConn, authority: core.ByHolder},
	core.Faktory: {job: (*world).faktoryJob, holder: core.HeldByWorker, authority: core.ByLeased},
}

// submit submits a job in the style of one of the protocols.
func (w *world) submit() error { return w.submitTo(queueName(w.rng.IntN(4))) }

func (w *world) submitTo(queue string) error {
	c := w.anyClient()
	j := &core.Job{
		Queue: queue, Body: fmt.Appendf(nil, "body %d", w.number), Origin: c.kind, Priority: w.priority(),
	}
	if keyOf(string(j.Body)) != "" {
		j.Tags = tagsOf(string(j.Body))
	}
	if w.rng.IntN(4) == 0 {
		j.Timeline = uint16(w.rng.IntN(8))
	}
	op := &core.Submit{Job: j, Tag: w.newTag()}
	styles[c.kind].job(w, op)
	if w.rng.IntN(4) == 0 {
		j.Own = core.PolicyFields(w.rng.IntN(int(core.JobFields) + 1))
	}
	if w.rng.IntN(4) == 0 {
		j.Cost = uint32(1 + w.rng.IntN(3))
	}
	w.link(j)
	w.whenBroken(j)
	holder := w.draft(op)
	if j.Unique != core.UniqueNone && !j.Ephemeral && w.rng.IntN(3) == 0 {
		op.Window = w.clk.Now().Add(time.Duration(1+w.rng.IntN(20_000)) * time.Millisecond)
		j.UniqueUntil = op.Window
	}
	asked, expiry, lossy := *j, w.expiryOf(w.firstOf(op)), w.losesNew(op)
	if op.Watch != core.WatchNone {
		w.model.waits[op.Tag] = &wait{client: c.id} // it may have ended before the reply is examined
	}
	var wrong error
	err := w.do(c, op, op.Tag, func(r core.Reply) {
		wrong = cmp.Or(w.checkRefusal(&r), w.windowHolds(op, &r))
		if asked.Unique == core.UniqueReplace {
			wrong = cmp.Or(wrong, w.checkReplaced(op, asked, holder, &r))
		}
		if i := w.look(r.Seq); r.Kind == core.Submitted && !r.Existing && i != nil && i.State.Unfinished() &&
			i.ExpiresAt != expiry {
			wrong = cmp.Or(wrong, fmt.Errorf("job %d expires at %d and not at %d", r.Seq, i.ExpiresAt, expiry))
		}
		asked.ExpiresAt = expiry
		known := *op
		known.Job = &asked
		if i := w.look(r.Seq); r.Kind == core.Submitted && !r.Existing &&
			(r.Commit != 0 && lossy || i != nil && i.Unstored != lossy) {
			wrong = cmp.Or(wrong, fmt.Errorf(
				"job %d is in memory only: %v, and its submission depends on commit %d: %+v", r.Seq, lossy, r.Commit,
				i))
		}
		w.submitted(c, &known, lossy, r)
	})
	return cmp.Or(err, wrong)
}

func (w *world) submitted(c *client, op *core.Submit, lossy bool, r core.Reply) {
	if r.Kind != core.Submitted {
		w.note("submit by %v refused: %v", c.kind, r.Err)
		delete(w.model.waits, op.Tag)
		return
	}
	j := op.Job
	w.note("submit %d to %s by %v, ephemeral %v, existing %v, after %v, parent %d, batch %d, commit %d", r.Seq, j.Queue,
		c.kind,
		j.Ephemeral, r.Existing, j.After, j.Parent, j.Batch, r.Commit)
	w.model.submitted(r.Seq, r.Existing, lossy, j, w.commitOf(r, !j.Ephemeral && !lossy))
	if p := w.model.jobs[r.Seq]; p != nil && !r.Existing {
		p.created = w.clk.Now()
	}
	if wt := w.model.waits[op.Tag]; wt != nil {
		wt.seq = r.Seq
	}
}

func (w *world) workqJob(op *core.Submit) {
	j, now := op.Job, w.clk.Now()
	j.ID = fmt.Sprintf("6ba7b810-9dad-41d1-80b4-%012x", w.number)
	j.LeaseFor = time.Duration(1+w.rng.IntN(5000)) * time.Millisecond
	if w.rng.IntN(6) == 0 { // run
		j.Ephemeral, op.Watch, op.Deadline = true, core.WatchRun, now.Add(
			time.Duration(w.rng.IntN(8000))*time.Millisecond,
		)
		return
	}
	j.ExpiresAt = now.Add(time.Duration(1+w.rng.IntN(60_000)) * time.Millisecond)
	if w.rng.IntN(4) == 0 {
		j.ReadyAt, j.ScheduledOrder = now.Add(time.Duration(w.rng.IntN(5000))*time.Millisecond), true
		j.ExpiresAt = j.ReadyAt.Add(time.Minute)
	}
	j.RetainUntil = j.ExpiresAt
	j.MaxFails = uint32(w.rng.IntN(3))
}

func (w *world) gearmanJob(op *core.Submit) {
	j := op.Job
	if w.rng.IntN(2) == 0 {
		j.SeqOrder, j.Tallies = true, core.TallyMoves
	}
	if w.rng.IntN(3) == 0 {
		j.Unique, j.UniqueKey = core.UniqueCoalesce, fmt.Sprint("key ", w.rng.IntN(5))
	}
	if w.rng.IntN(3) == 0 {
		j.Ephemeral, op.Watch = true, core.WatchStream
	}
	j.MaxAttempts = uint32(w.rng.IntN(3))
}

func (w *world) faktoryJob(op *core.Submit) {
	j := op.Job
	j.ID = fmt.Sprint("faktory-", w.number)
	j.Format = core.Args
	j.LeaseFor = time.Duration(1+w.rng.IntN(20)) * time.Second
	j.MaxFails, j.Backoff, j.Exhausted = uint32(1+w.rng.IntN(3)), core.BackoffFaktory, core.ExhaustedBury
	j.LeaseEnd, j.DeadFor = core.LeaseEndFail, core.DeadFor
	switch w.rng.IntN(8) {
	case 0, 1:
		j.ReadyAt = w.clk.Now().Add(time.Duration(w.rng.IntN(20_000)) * time.Millisecond)
	case 2:
		j.Unique, j.UniqueKey = core.UniqueRefuse, fmt.Sprint("lock ", w.rng.IntN(3))
		j.UniqueStart = w.rng.IntN(2) == 0
	case 3:
		j.RetainFor = 30 * time.Second
	case 4:
		j.StartBefore = w.clk.Now().Add(time.Duration(w.rng.IntN(9000)) * time.Millisecond)
	}
	if n := len(w.model.numbers); n > 0 && w.rng.IntN(3) == 0 {
		j.Batch = w.model.numbers[n-1-w.rng.IntN(min(n, 3))]
	}
}

// priority returns one of a few priorities, two of which differ only beyond 32 bits.
func (w *world) priority() int64 {
	return []int64{-1, 0, 1, -1, 0, 1, -1, 0, 1, core.MinPriority, core.MinPriority + 1<<32}[w.rng.IntN(11)]
}

// link sometimes makes a job depend on other jobs.
func (w *world) link(j *core.Job) {
	if w.focus != nil && !j.Ephemeral {
		if j.After = []uint64{w.focus.seq}; w.rng.IntN(3) == 0 {
			j.After, j.Parent = nil, w.focus.seq
		}
		return
	}
	if len(w.model.seqs) == 0 || j.Ephemeral || w.rng.IntN(5) != 0 {
		return
	}
	if w.rng.IntN(3) == 0 {
		j.Parent = w.anyJob().seq
		return
	}
	for range 1 + w.rng.IntN(6) {
		j.After = append(j.After, w.anyJob().seq)
	}
}

// anyJob returns a submitted job, or nil. It prefers new jobs, which are more likely to exist.
func (w *world) anyJob() *promise {
	n := len(w.model.seqs)
	if n == 0 || w.focus != nil {
		return w.focus
	}
	return w.model.jobs[w.model.seqs[n-1-w.rng.IntN(min(n, 30))]]
}
