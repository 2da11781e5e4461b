package remote

import (
	"errors"
	"slices"

	"broker/core"
)

// The structures of the frequent operations and replies, each field in the order of its declaration. A test fills every
// field and compares what comes out, so that none is forgotten.

func ref(c *coder, r *core.Ref) {
	unsigned(c, &r.Seq)
	c.text(&r.ID)
}

// condition is mostly the zero one, which takes a byte.
func condition(c *coder, v *core.Condition) {
	restricts := v.Restricts() || v.States != nil || v.Epoch != 0
	c.flags(&restricts, &v.HasEpoch, &v.Unended)
	if !restricts {
		return
	}
	states(c, &v.States)
	unsigned(c, &v.Epoch)
	c.text(&v.Queue)
	c.text(&v.Worker)
	signed(c, &v.LeasedAt)
}

func metaEntry(c *coder, m *core.MetaEntry) {
	c.text(&m.Name)
	c.bytes(&m.Value)
}

func progress(c *coder, p *core.Progress) {
	unsigned(c, &p.Num)
	unsigned(c, &p.Den)
	c.bytes(&p.Verbatim)
	c.text(&p.Text)
	signed(c, &p.UpdatedAt)
}

func failure(c *coder, f *core.Failure) {
	c.text(&f.Type)
	c.text(&f.Message)
	c.text(&f.Group)
	texts(c, &f.Backtrace)
	signed(c, &f.FailedAt)
	signed(c, &f.NextAt)
	unsigned(c, &f.Count)
	c.flags(&f.Exception)
	c.bytes(&f.Data)
}

func outcome(c *coder, o *core.Outcome) {
	c.flags(&o.Success)
	c.bytes(&o.Result)
	optional(c, &o.Failure, failure)
	unsigned(c, &o.Cause)
}

func grant(c *coder, g *core.Grant) {
	unsigned(c, &g.Epoch)
	signed(c, &g.LeasedAt)
	signed(c, &g.LeaseFor)
	signed(c, &g.EnqueuedAt)
	unsigned(c, &g.Attempts)
	unsigned(c, &g.Fails)
	optional(c, &g.Failure, failure)
}

func job(c *coder, j *core.Job) {
	unsigned(c, &j.Seq)
	c.text(&j.ID)
	c.text(&j.Queue)
	c.text(&j.Type)
	c.bytes(&j.Body)
	texts(c, &j.Tags)
	c.bytes(&j.Attributes)
	c.text(&j.Trace)
	signed(c, &j.Priority)
	signed(c, &j.CreatedAt)
	signed(c, &j.ReadyAt)
	signed(c, &j.ExpiresAt)
	signed(c, &j.StartBefore)
	signed(c, &j.LeaseFor)
	signed(c, &j.DeadFor)
	optional(c, &j.Failure, failure)
	unsigned(c, &j.MaxAttempts)
	unsigned(c, &j.MaxFails)
	unsigned(c, &j.PriorFails)
	unsigned(c, &j.Cost)
	unsigned(c, &j.Timeline)
	unsigned(c, &j.Format)
	unsigned(c, &j.Origin)
	unsigned(c, &j.Backoff)
	unsigned(c, &j.Exhausted)
	unsigned(c, &j.LeaseEnd)
	unsigned(c, &j.Own)
	unsigned(c, &j.Unique)
	c.flags(&j.UniqueStart, &j.Ephemeral, &j.ScheduledOrder, &j.SeqOrder)
	unsigned(c, &j.Tallies)
	unsigned(c, &j.OnBroken)
	c.text(&j.UniqueKey)
	signed(c, &j.UniqueUntil)
	signed(c, &j.RetainUntil)
	signed(c, &j.RetainFor)
	unsigned(c, &j.Parent)
	numbers(c, &j.After)
	unsigned(c, &j.Batch)
	c.text(&j.Schedule)
	unsigned(c, &j.CallbackFor)
	optional(c, &j.Rare, rareFields)
}

func rareFields(c *coder, f *core.RareFields) {
	signed(c, &f.Deadline)
	unsigned(c, &f.RerunOf)
}

// kinds are the errors that keep their identity, a special one before the one that it is. Their positions are on the
// wire: an error that is added comes last, or before the last that it is.
var kinds = []error{
	core.ErrDamaged, core.ErrOutOfTurn,
	core.ErrNotFound, core.ErrNoQueue, core.ErrDuplicate, core.ErrNotUnique, core.ErrNotLeased, core.ErrNotHolder,
	core.ErrFinished, core.ErrFull, core.ErrBusy, core.ErrInvalid, core.ErrDiskFull, core.ErrStopped, core.ErrDraining,
	core.ErrShutdown, core.ErrNoBatch, core.ErrBatchState, core.ErrConflict, core.ErrHasDependents, core.ErrNoSchedule,
	core.ErrNoLimit, core.ErrConfigured, core.ErrForbidden,
}

// wireError is an error of the core with a text of its own.
type wireError struct {
	kind error
	text string
}

func (e *wireError) Error() string { return e.text }

// Unwrap returns the kind.
func (e *wireError) Unwrap() error { return e.kind }

// fault is the error of a reply; nil in most.
func fault(c *coder, err *error) {
	there := *err != nil
	if c.flags(&there); !there {
		*err = nil
		return
	}
	if !c.reading {
		appendFault(c, *err)
		return
	}
	var kind uint8
	var text string
	var d core.DependentsError
	unsigned(c, &kind)
	c.text(&text)
	unsigned(c, &d.Seq)
	unsigned(c, &d.Dependent)
	if int(kind) >= len(kinds) {
		c.fail()
		return
	}
	switch known := kinds[kind]; {
	case d != core.DependentsError{}:
		*err = &d
	case text == known.Error():
		*err = known
	default:
		*err = &wireError{known, text}
	}
}

func appendFault(c *coder, err error) {
	of := slices.IndexFunc(kinds, func(k error) bool { return errors.Is(err, k) })
	if of < 0 { // the core lists its errors, so there is none
		of = slices.Index(kinds, core.ErrInvalid)
	}
	kind := uint8(of)
	text := err.Error()
	var d core.DependentsError
	if of := (*core.DependentsError)(nil); errors.As(err, &of) {
		d = *of
	}
	unsigned(c, &kind)
	c.text(&text)
	unsigned(c, &d.Seq)
	unsigned(c, &d.Dependent)
}
