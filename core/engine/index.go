package engine

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

// index builds the machine from a store: load reads everything, update reads the changes since then, and finish makes the
// machine ready for an engine. A start calls load and finish, a Standby calls update in between.
type index struct {
	machine  *machine.Machine
	options  machine.Options
	store    *store.Store
	changes  *store.Follower
	entry    uint64 // last entry that update has read
	clock    func() core.Instant
	progress func(jobs uint64, part float64) // may be nil
}

// newIndex returns an index without a machine. The caller must close it.
func newIndex(s *store.Store, o machine.Options, clock func() core.Instant) *index {
	return &index{store: s, options: o, changes: s.Follow(), clock: clock}
}

func (x *index) close() { x.changes.Close() }

// load restores all jobs. It may be called again.
func (x *index) load(ctx context.Context) error {
	now := x.clock()
	m := machine.New(x.options)
	x.machine = m
	if err := x.store.ScanMeta(limit.PolicyPrefix, m.RestoreMeta); err != nil {
		return err
	}
	return x.store.Scan(ctx, x.progress, func(r *record.Record) error {
		m.Restore(now, r)
		return nil
	})
}

// update restores again the jobs that have changed, and the jobs in also.
func (x *index) update(ctx context.Context, also []uint64) (err error) {
	now := x.clock()
	if !x.machine.Follow(now) {
		if err := x.load(ctx); err != nil {
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
		if !machine.IsPolicy(name) {
			continue
		}
		jobs = append(jobs, x.machine.ForgetPolicy(name)...)
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

// finish makes the machine ready for an engine: it restores the rest of the metadata and the links between jobs. The store must
// not change meanwhile.
func (x *index) finish() (*machine.Machine, error) {
	m := x.machine
	m.Begin(core.Commit(x.store.Position().Number))
	err := x.store.ScanMeta("", func(name string, value []byte) error {
		if machine.IsPolicy(name) {
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

// takeOver makes a machine that was kept up to date ready for an engine. Leases that continue get their full time
// again.
func (x *index) takeOver(ctx context.Context, o machine.Options) (*machine.Machine, error) {
	x.options = o
	x.machine.SetOptions(o)
	if err := x.update(ctx, x.machine.Leased()); err != nil {
		return nil, err
	}
	return x.finish()
}

// build is load and finish.
func build(ctx context.Context, s *store.Store, o machine.Options, clock func() core.Instant, progress func(uint64, float64)) (*machine.Machine, error) {
	x := newIndex(s, o, clock)
	defer x.close()
	x.progress = progress
	if err := x.load(ctx); err != nil {
		return nil, err
	}
	return x.finish()
}
