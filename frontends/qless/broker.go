package qless

import (
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"broker/core"
)

// brokerJob is the last known state of a job in the broker.
type brokerJob struct {
	seq           uint64 // zero: not in the broker
	state         string // in terms of Qless: waiting, scheduled, depends, running or failed
	queue         string
	readyAt       core.Instant
	after         []string // the jids of the jobs that it waits for
	worker        string   // running: the holder of the lease
	epoch         uint32   // running: epoch of the lease
	leased        bool     // running: the lease is still there
	foreignWorker bool     // running: the worker speaks another protocol
	priority      int64
}

// Limits of the translation.
const (
	// leaseFor is the length of the broker's leases. It is very long, because the front-end ends leases itself, see
	// sweep.go.
	leaseFor = 1000 * time.Hour

	// never is the due time of a job that waits for something the broker does not know.
	never = core.Instant(253402300799 * 1_000_000)
)

// coreQueue is the broker's name for a queue.
func (f *Frontend) coreQueue(name string) string { return f.opts.Namespace + name }

// instant converts a client's time to the broker's.
func instant(at float64) core.Instant {
	return core.Instant(min(max(at*1e6, 1), float64(never)))
}

// seconds converts an instant to the clients' format.
func seconds(at core.Instant) float64 { return float64(at) / 1e6 }

// corePriority converts a priority to the broker's range.
func corePriority(p float64) int64 {
	return int64(min(max(math.Round(p), math.MinInt32), math.MaxInt32))
}

// coreTags returns the tags that the broker can index.
func coreTags(tags []string) []string {
	fit := slices.DeleteFunc(slices.Clone(tags), func(t string) bool { return t == "" || len(t) > core.MaxTagBytes })
	return fit[:min(len(fit), core.MaxTags)]
}

// wanted is the state that the job must have in the broker; empty: it must be complete or absent.
func (j *job) wanted() string {
	switch j.state {
	case waiting, stalled, scheduled, depends:
		switch {
		case j.places[waitingSet].in:
			return waiting
		case j.places[scheduledSet].in:
			return scheduled
		case j.places[dependsSet].in:
			return depends
		}
		return waiting
	case running, failed:
		return j.state
	}
	return ""
}

// plan holds the operations of a command, with the state of the broker's jobs after each.
type plan struct {
	submits []step // run first: later operations need their jobs
	rest    []step

	// noDependencies makes blocked jobs wait for this front-end only, because the broker refuses jobs that wait for
	// each other.
	noDependencies bool
}

// step is an operation and the state of the job in the broker afterwards.
type step struct {
	op   core.Op
	j    *job
	then brokerJob
}

// plan compares the model after the command with the state of the broker, and lists the operations that make both
// equal.
func (t *tx) plan(noDependencies bool) *plan {
	p := &plan{noDependencies: noDependencies}
	for _, j := range t.touched {
		t.planJob(p, j)
	}
	return p
}

func (t *tx) planJob(p *plan, j *job) {
	live := j.broker.seq != 0
	ref := core.Ref{Seq: j.broker.seq}
	want := j.wanted()
	switch {
	case j.gone && live:
		p.add(j, &core.Cancel{Ref: ref}, brokerJob{})
	case j.gone:
	case want == "" && live:
		p.add(j, &core.Complete{Ref: ref, If: j.condition(), Authority: core.ByAnyone, Result: t.result(j)},
			brokerJob{})
	case want == "" || want == failed && !live:
	case want == failed && j.broker.state != failed:
		t.planFailure(p, j)
	case want == failed:
		if set, changed := t.changes(j); changed {
			p.add(j, &core.Update{Ref: ref, Set: set}, j.broker)
		}
	case !live:
		t.planSubmission(p, j, want)
	case want == running:
		t.planLease(p, j)
	case t.syncing && (j.broker.leased ||
		want == scheduled && j.broker.state == waiting): // leased by another client, or due by the clock
	default:
		t.planWait(p, j, want)
	}
}

func (p *plan) add(j *job, op core.Op, then brokerJob) {
	p.rest = append(p.rest, step{op: op, j: j, then: then})
}

// condition requires that the job in the broker still has its last known state.
func (j *job) condition() core.Condition {
	if j.broker.leased {
		return core.Condition{States: []core.State{core.Leased}, Epoch: j.broker.epoch, HasEpoch: true}
	}
	return core.InState(core.Scheduled, core.Blocked, core.Ready, core.Retrying, core.Dead)
}

// result is the result for clients that wait for a job: its data, if the worker has changed it.
func (t *tx) result(j *job) []byte {
	if !j.foreign || !t.newData[j] {
		return nil
	}
	v, err := decode(j.data)
	if text, ok := v.(string); ok && err == nil {
		return []byte(text)
	}
	return []byte(j.data)
}

func (t *tx) planFailure(p *plan, j *job) {
	op := &core.Fail{Ref: core.Ref{Seq: j.broker.seq}, If: j.condition(), Authority: core.ByAnyone, Final: !j.foreign}
	if f := j.failure; f != nil {
		op.Failure = &core.Failure{Type: f.group, Message: f.message, Group: f.group}
	}
	then := j.broker
	then.state, then.leased = failed, false
	p.add(j, op, then)
	if j.foreign { // its own retry policy decides what happens next
		t.front.markDirty(j.broker.seq)
	}
}

// changes returns the changed fields of a job.
func (t *tx) changes(j *job) (set core.JobChange, any bool) {
	was := t.before[j]
	if was.klass != j.klass {
		klass := j.klass
		set.Type, any = &klass, true
	}
	if p := corePriority(j.priority); p != corePriority(was.priority) {
		set.Priority, any = &p, true
	}
	if tags := coreTags(j.tags); !slices.Equal(tags, coreTags(was.tags)) {
		set.Tags, any = &tags, true
	}
	if t.newData[j] {
		set.Body, any = j.body(), true
	}
	return set, any
}

func (j *job) body() *core.Body {
	b := &core.Body{Bytes: []byte(j.data)}
	if j.foreign && strings.HasPrefix(strings.TrimSpace(j.data), "[") {
		b.Format = core.Args
	}
	return b
}

func (t *tx) planSubmission(p *plan, j *job, want string) {
	n := &core.Job{
		ID: j.jid, Queue: j.queue, Type: j.klass, Body: []byte(j.data), Origin: core.Qless, Tags: coreTags(j.tags),
		Priority: corePriority(j.priority), MaxFails: 1, Exhausted: core.ExhaustedBury,
		// Qless counts retries itself
		Own: core.PolicyMaxAttempts | core.PolicyMaxFails | core.PolicyBackoff | core.PolicyExhausted,
	}
	then := brokerJob{state: want}
	for kind := range jobSets {
		if at := j.places[kind]; at.in && kind != lockSet {
			n.Queue = at.queue
		}
	}
	n.Queue = t.front.coreQueue(n.Queue)
	if t.front.opts.Route != nil {
		queue, typ := t.front.opts.Route(strings.TrimPrefix(n.Queue, t.front.opts.Namespace), j.klass)
		if t.front.coreQueue(queue) != n.Queue {
			n.Queue = queue
		}
		n.Type = typ
	}
	then.queue = n.Queue
	switch want {
	case scheduled:
		n.ReadyAt = instant(j.places[scheduledSet].score)
	case depends:
		n.ReadyAt = j.releasedAt()
		then.after = j.dependencies
		if n.After = t.seqs(j); len(n.After) == 0 || p.noDependencies {
			n.After, n.ReadyAt = nil, never
		}
	}
	then.readyAt = n.ReadyAt
	j.foreign = false
	if want == running {
		then.state = waiting
		p.submits = append(p.submits, step{op: &core.Submit{Job: n}, j: j, then: then})
		then.state, then.worker, then.leased = running, j.worker, true
		p.add(j, &core.LeaseJob{Ref: core.Ref{ID: j.jid}, Worker: leaseName(j.worker), LeaseFor: leaseFor}, then)
		return
	}
	p.rest = append(p.rest, step{op: &core.Submit{Job: n}, j: j, then: then})
}

// leaseName is the worker's name in the broker, which does not accept an empty name.
func leaseName(worker string) string {
	if worker == "" {
		return "qless"
	}
	return worker
}

// releasedAt is the time at which a job becomes due once its dependencies are complete; zero: at once.
func (j *job) releasedAt() core.Instant {
	if !j.hasDue {
		return 0
	}
	return instant(j.due)
}

// seqs returns the Seqs of the jobs that a job waits for.
func (t *tx) seqs(j *job) (all []uint64) {
	for _, d := range j.dependencies {
		if on := t.m.jobs.get(d); on != nil && on != j && on.broker.seq != 0 {
			all = append(all, on.broker.seq)
		}
	}
	return all
}

func (t *tx) planLease(p *plan, j *job) {
	ref := core.Ref{Seq: j.broker.seq}
	then := j.broker
	set, changed := t.changes(j)
	if !t.syncing && t.respawned(j) {
		move := &core.Move{
			Ref: ref, If: j.condition(), Authority: core.ByAnyone, After: []core.Ref{}, Set: set,
			Queue: t.front.coreQueue(j.queue),
		}
		waits := brokerJob{seq: j.broker.seq, state: waiting, queue: move.Queue}
		p.submits = append(p.submits, step{op: move, j: j, then: waits})
		waits.state, waits.worker, waits.leased = running, j.worker, true
		p.add(j, &core.LeaseJob{Ref: ref, Worker: leaseName(j.worker), LeaseFor: leaseFor}, waits)
		return
	}
	if changed {
		op := &core.Update{Ref: ref, Set: set}
		p.add(j, op, then)
	}
	fresh := j.broker.state == running && j.broker.leased && !j.broker.foreignWorker && j.broker.worker == j.worker
	if fresh || t.syncing { // a sync must not undo changes of other clients
		return
	}
	then.state, then.worker, then.leased, then.foreignWorker = running, j.worker, true, false
	op := &core.LeaseJob{Ref: ref, Worker: leaseName(j.worker), LeaseFor: leaseFor}
	if !hasUpdate(p, j) {
		op.If = j.condition()
	}
	p.add(j, op, then)
}

// respawned reports whether a running job has replaced a job with the same jid that was blocked, failed or in another
// queue.
func (t *tx) respawned(j *job) bool {
	was := t.before[j]
	return j.broker.state == depends || j.broker.state == failed || was.queue != j.queue
}

// hasUpdate reports whether the last step updates the job. An update raises the epoch.
func hasUpdate(p *plan, j *job) bool {
	if n := len(p.rest); n > 0 && p.rest[n-1].j == j {
		_, is := p.rest[n-1].op.(*core.Update)
		return is
	}
	return false
}

// waitSets are the lists of jobs without a lease, by state.
var waitSets = map[string]setKind{waiting: waitingSet, scheduled: scheduledSet, depends: dependsSet}

// planWait moves a job to a state without a lease.
func (t *tx) planWait(p *plan, j *job, want string) {
	ref := core.Ref{Seq: j.broker.seq}
	set, changed := t.changes(j)
	then := brokerJob{seq: j.broker.seq, state: want, queue: j.broker.queue}
	at := j.places[waitSets[want]]
	move := &core.Move{Ref: ref, If: j.condition(), Authority: core.ByAnyone, After: []core.Ref{}, Set: set}
	if was := t.before[j]; at.queue != "" && (at.queue != was.queue || at.queue != j.queue) {
		move.Queue = t.front.coreQueue(at.queue)
		then.queue = move.Queue
	}
	switch want {
	case scheduled:
		move.ReadyAt = instant(at.score)
	case depends:
		// the broker alone knows what it waits for
		if j.foreign && len(j.dependencies) == 0 && j.broker.state == depends {
			then.after, move.ReadyAt = j.broker.after, j.broker.readyAt
			break
		}
		move.ReadyAt = j.releasedAt()
		for _, seq := range t.seqs(j) {
			move.After = append(move.After, core.Ref{Seq: seq})
		}
		then.after = j.dependencies
		if len(move.After) == 0 || p.noDependencies {
			move.After, move.ReadyAt = []core.Ref{}, never
		}
	}
	then.readyAt = move.ReadyAt
	old := j.broker
	same := old.state == want && old.queue == then.queue && slices.Equal(old.after, then.after)
	switch {
	case same && (want != scheduled && want != depends || old.readyAt == then.readyAt):
		if changed {
			p.add(j, &core.Update{Ref: ref, Set: set}, old)
		}
	case want == waiting && old.state == scheduled && old.queue == then.queue && old.readyAt <= t.front.broker.Now() &&
		!changed:
		p.add(j, nil, then) // the broker has made it ready by now
	case j.state == stalled && old.state == running && old.leased && !changed && move.Queue == "":
		p.add(j, &core.Release{Ref: ref, Epoch: old.epoch}, then)
	default:
		p.add(j, move, then)
	}
}

// conflicts reports whether an error means that the job in the broker has changed since its last known state.
func conflicts(err error) bool {
	for _, kind := range []error{
		core.ErrConflict, core.ErrNotFound, core.ErrFinished, core.ErrNotLeased, core.ErrDuplicate, core.ErrNotHolder,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
