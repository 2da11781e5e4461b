package index

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"broker/core"
	"broker/core/internal/limit"
	"broker/core/internal/machine"
	"broker/core/internal/record"
	"broker/core/internal/store"
)

// Index is a machine that is built from a store. One goroutine uses it.
type Index struct {
	machine *machine.Machine
	options machine.Options
	store   *store.Store
	changes *store.Follower
	entry   uint64 // last entry that Update has read
	clock   func() core.Instant

	progress func(jobs uint64, part float64) // called during Load; may be nil
}

// New returns an index without a machine. The caller must close it, before the store.
func New(s *store.Store, o machine.Options, clock func() core.Instant) *Index {
	return &Index{store: s, options: o, changes: s.Follow(), clock: clock}
}

// Close ends the index. The machine that TakeOver returned stays valid.
func (x *Index) Close() { x.changes.Close() }

// Jobs returns the number of jobs.
func (x *Index) Jobs() int { return x.machine.Jobs() }

// Entry returns the number of the last entry that Update has read.
func (x *Index) Entry() uint64 { return x.entry }

// Load restores all jobs. It may be called again.
func (x *Index) Load(ctx context.Context) error {
	now := x.clock()
	m := machine.New(x.options)
	x.machine = m
	if err := x.store.ScanMeta(limit.RulesPrefix, m.RestoreMeta); err != nil {
		return err
	}
	return x.store.Scan(ctx, x.progress, func(r *record.Record) error {
		m.Restore(now, r)
		return nil
	})
}

// Update restores again the jobs that have changed, and the jobs in also.
func (x *Index) Update(ctx context.Context, also []uint64) (err error) {
	now := x.clock()
	if !x.machine.Follow(now) {
		if err := x.Load(ctx); err != nil {
			return err
		}
	}
	c, err := x.changes.Changes()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	x.entry = c.Position.Number
	jobs := append(c.Jobs, also...)
	for _, name := range c.Meta {
		if !machine.IsRules(name) {
			continue
		}
		jobs = append(jobs, x.machine.ForgetRules(name)...)
		value, err := c.MetaEntry(name)
		if errors.Is(err, store.ErrMissing) {
			continue
		}
		if err == nil {
			err = x.machine.RestoreMeta(name, value)
		}
		if err != nil {
			return err
		}
	}
	slices.Sort(jobs)
	jobs = slices.Compact(jobs)
	for _, seq := range jobs {
		x.machine.Forget(seq)
	}
	return c.Records(ctx, jobs, func(r *record.Record) error {
		x.machine.Restore(now, r)
		return nil
	})
}

// finish makes the machine ready for an engine: it restores the rest of the metadata and the links between jobs. The
// store must not change meanwhile.
func (x *Index) finish() (*machine.Machine, error) {
	m := x.machine
	m.Begin(core.Commit(x.store.Position().Number))
	err := x.store.ScanMeta("", func(name string, value []byte) error {
		if machine.IsRules(name) {
			return nil
		}
		return m.RestoreMeta(name, value)
	})
	if err != nil {
		return nil, fmt.Errorf("read metadata: %w", err)
	}
	m.Restored()
	return m, nil
}

// TakeOver makes a machine that was kept up to date ready for an engine. Leases continue until their ends.
func (x *Index) TakeOver(ctx context.Context, o machine.Options) (*machine.Machine, error) {
	x.options = o
	x.machine.SetOptions(o)
	if err := x.Update(ctx, x.machine.Leased()); err != nil {
		return nil, err
	}
	return x.finish()
}

// Build returns the machine of a store for an engine. progress may be nil; it is called from time to time with the
// number of jobs and the share of the store that was read.
func Build(
	ctx context.Context, s *store.Store, o machine.Options, clock func() core.Instant,
	progress func(jobs uint64, part float64),
) (*machine.Machine, error) {
	x := New(s, o, clock)
	defer x.Close()
	x.progress = progress
	if err := x.Load(ctx); err != nil {
		return nil, err
	}
	return x.finish()
}
