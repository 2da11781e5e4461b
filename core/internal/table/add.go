package table

import (
	"strings"
	"time"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/timer"
)

// Add creates the entry of a submitted job, whose number is already assigned. It keeps no reference to j.
func (t *Table) Add(j *core.Job, n uint32) uint32 {
	h, e := t.alloc()
	e.Seq, e.Queue, e.CreatedAt = j.Seq, n, j.CreatedAt
	e.setPriority(j.Priority)
	e.ReadyAt = max(j.CreatedAt, j.ReadyAt)
	e.ExpiresAt = j.ExpiresAt
	e.LeaseFor = Millis(j.LeaseFor)
	e.MaxAttempts, e.MaxFails, e.Fails = j.MaxAttempts, j.MaxFails, j.PriorFails
	e.Origin, e.Backoff, e.Exhausted, e.Extra = j.Origin, j.Backoff, j.Exhausted, ExtraFlags(j.Own&lastingFields)
	if j.LeaseEnd == core.LeaseEndFail {
		e.Extra |= EndFails
	}
	e.DeadHours = uint16(min((j.DeadFor+time.Hour-1)/time.Hour, 1<<16-1))
	e.BodyBytes = uint32(len(j.Body))
	t.SetType(e, j.Type)
	if len(j.Tags) > 0 {
		t.SetTags(h, j.Tags)
	}
	t.setTrace(h, e, j.Trace)
	if j.Failure != nil {
		t.SetFirstFail(h, e, j.Failure.FailedAt)
	}
	if j.Ephemeral {
		e.Set(Ephemeral)
	}
	if j.ScheduledOrder {
		e.Set(ScheduledOrder)
		e.ReadyAt = j.ReadyAt
	}
	if j.SeqOrder {
		e.Set(SeqOrder)
		e.ReadyAt = j.ReadyAt // its CreatedAt may be later
		t.LastPlace = max(t.LastPlace, j.CreatedAt)
	}
	e.setTallies(j.Tallies)
	if j.Kept() {
		e.Set(KeepsOutcome)
	}
	t.bySeq.put(j.Seq, h)
	if j.ID != "" {
		e.ID = DigestOf(j.ID)
		t.byID[e.ID] = h
		if core.IsUUIDv4(j.ID) {
			e.Set(IDIsUUIDv4)
		}
	}
	if e.ExpiresAt != 0 {
		e.ExpiryTimer = t.Timers.Add(e.ExpiresAt, timer.Owner{Kind: TimerExpiry, Handle: h})
	}
	if j.Unique != core.UniqueNone && j.UniqueKey != "" {
		t.LockUnique(h, DigestOf(j.UniqueKey))
	}
	t.indexOptional(h, j)
	return h
}

// indexOptional creates the Optional of a job that needs one.
func (t *Table) indexOptional(h uint32, j *core.Job) {
	if j.StartBefore != 0 || j.UniqueUntil != 0 || j.UniqueStart || j.RetainFor != 0 ||
		j.RetainUntil != 0 && j.RetainUntil != j.ExpiresAt {
		x := t.EnsureOptional(h)
		x.StartBefore, x.UniqueUntil, x.UniqueStart = j.StartBefore, j.UniqueUntil, j.UniqueStart
		x.RetainUntil, x.RetainFor = j.RetainUntil, j.RetainFor
	}
	if j.Parent != 0 || len(j.After) > 0 {
		t.EnsureOptional(h).Parent = j.Parent
	}
	if j.Failure != nil {
		t.EnsureOptional(h).priorGroup = strings.Clone(groupOf(j.Failure)) // it may be a view of a record
	}
	if j.Cost > 1 {
		t.EnsureOptional(h).cost = j.Cost
	}
	if j.OnBroken != core.BrokenWaits {
		t.EnsureOptional(h).OnBroken = j.OnBroken
	}
	if j.Timeline != 0 {
		t.EnsureOptional(h).Timeline = j.Timeline
	}
	if j.Batch != 0 || j.CallbackFor != 0 {
		x := t.EnsureOptional(h)
		x.Batch, x.CallbackFor = j.Batch, j.CallbackFor
	}
}

// setTrace keeps the trace of a new job for its events, because its payload may not be in memory by then.
func (t *Table) setTrace(h uint32, e *Entry, trace string) {
	if trace != "" {
		e.Set(Traced)
		t.traces[h] = strings.Clone(trace) // it may be a view of a record
	}
}

// TraceOf is the trace of a job; empty if it has none.
func (t *Table) TraceOf(h uint32) string { return t.traces[h] }

// ExpireAt sets the expiry of a job.
func (t *Table) ExpireAt(h uint32, e *Entry, until core.Instant) {
	t.Timers.Remove(&e.ExpiryTimer)
	e.ExpiresAt = until
	if until != 0 {
		e.ExpiryTimer = t.Timers.Add(until, timer.Owner{Kind: TimerExpiry, Handle: h})
	}
}

// FirstFail returns when a job failed first; zero: never. Few jobs fail, so the time is not in their entries.
func (t *Table) FirstFail(h uint32, e *Entry) core.Instant {
	if e.Fails == 0 {
		return 0
	}
	return t.firstFails[h]
}

// SetFirstFail sets when a job failed first, before its number of failures becomes zero.
func (t *Table) SetFirstFail(h uint32, e *Entry, at core.Instant) {
	switch {
	case e.Fails == 0:
	case at == 0:
		delete(t.firstFails, h)
	default:
		t.firstFails[h] = at
	}
}

// LeaseSpan is the duration of the current lease, or of its last extension.
func (e *Entry) LeaseSpan() time.Duration { return time.Duration(e.Granted) * time.Millisecond }

// ChangedAt is when a job entered its state, if known.
func (t *Table) ChangedAt(h uint32, e *Entry) core.Instant {
	switch e.State {
	case core.Leased:
		return e.LeasedAt
	case core.Retrying:
		return max(e.LeasedAt, t.FirstFail(h, e)) // older records have only the time of the first failure
	case core.Scheduled, core.Blocked: // readyAt is in the future
		return e.CreatedAt
	case core.Ready:
		return max(e.ReadyAt, e.LeasedAt)
	case core.Gone, core.Done, core.Dead:
	}
	return e.ReadyAt
}

// unstoredDependencies lists the dependencies of a job that are not in the store.
func (t *Table) unstoredDependencies(x *Optional) (seqs []uint64) {
	for _, seq := range x.Waiting {
		if p := t.Handle(seq); p != 0 && t.At(p).Unstored() {
			seqs = append(seqs, seq)
		}
	}
	return seqs
}

// Millis is d in milliseconds, at least one if d is positive, limited to what an entry can hold.
func Millis(d time.Duration) uint32 {
	if d <= 0 {
		return 0
	}
	return uint32(min(max(d/time.Millisecond, 1), 1<<32-1))
}

// AddPayload keeps the payload of a new job in memory.
func (t *Table) AddPayload(h uint32, j *core.Job) {
	t.slab.putPayload(h, j)
	t.cached += PayloadBytes(j)
}

// SetPayload keeps a job's payload in memory and counts its bytes.
func (t *Table) SetPayload(h uint32, j *core.Job) {
	t.dropPayload(h)
	if j == nil {
		t.At(h).Set(NonResident)
		return
	}
	t.AddPayload(h, j)
	t.At(h).Clear(NonResident)
}

// dropPayload is SetPayload for a job that is removed.
func (t *Table) dropPayload(h uint32) {
	if old := t.slab.takePayload(h); old != nil {
		t.cached -= PayloadBytes(old)
	}
}

// CacheRoom is how many bytes of payloads the cache still takes; negative if it is more than full.
func (t *Table) CacheRoom() int { return t.opts.CacheBytes - t.cached }

// LeastPayload is the approximate memory of a payload without a body.
const LeastPayload = 512

// PayloadBytes is the approximate memory of a payload.
func PayloadBytes(j *core.Job) int {
	n := LeastPayload + len(j.Body) + len(j.Attributes) + len(j.ID) + len(j.UniqueKey) + 8*len(j.After) + len(j.Trace)
	for _, tag := range j.Tags {
		n += 16 + len(tag)
	}
	if j.Failure != nil {
		n += record.FailureSize(j.Failure)
	}
	return n
}

// EachJob walks all jobs in the order of their handles.
func (t *Table) EachJob(fn func(h uint32, e *Entry)) {
	for h := uint32(1); h <= t.LastHandle; h++ {
		if e := t.At(h); e.Seq != 0 {
			fn(h, e)
		}
	}
}
