package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"broker/core/clock"
	"broker/core/internal/index"
	"broker/core/internal/machine"
	"broker/core/internal/store"
)

// standbyEvery is how often a Standby restores changed jobs. Jobs that come and go in between cost almost nothing.
const standbyEvery = 250 * time.Millisecond

// Standby keeps the index of a store up to date while entries are applied to it, so that an engine on this store starts
// without reading it: see Replicated.
type Standby struct {
	index  *index.Index
	ctx    context.Context
	cancel context.CancelFunc
	take   chan struct{} // closed when an engine takes the index
	done   chan struct{} // closed when the goroutine has ended
	once   sync.Once
	err    error // why the goroutine has ended

	progress atomic.Pointer[StandbyProgress]
}

// StandbyProgress is how complete the index of a Standby is.
type StandbyProgress struct {
	Complete bool   // the index has all jobs; an engine would start at once
	Jobs     int    // in the index
	Entry    uint64 // number of the last entry that it has read from the store
}

// Progress may be called from any goroutine.
func (b *Standby) Progress() StandbyProgress { return *b.progress.Load() }

// NewStandby starts to read a store. loaded is called on another goroutine, with the number of jobs, once all jobs are
// read. The Standby must be stopped before the store is closed.
func NewStandby(s *store.Store, c clock.Clock, loaded func(jobs int)) *Standby {
	b := &Standby{
		index: index.New(s, machine.Options{Persist: true, StartedAt: c.Now()}, c.Now), take: make(chan struct{}),
		done: make(chan struct{}),
	}
	b.progress.Store(&StandbyProgress{})
	b.ctx, b.cancel = context.WithCancel(context.Background())
	go b.run(loaded) // ends with ctx, or when the index is taken; Stop waits for it
	return b
}

func (b *Standby) run(loaded func(jobs int)) {
	defer close(b.done)
	defer func() {
		if b.err != nil {
			b.progress.Store(&StandbyProgress{})
		}
	}()
	if b.err = b.index.Load(b.ctx); b.err != nil {
		return
	}
	tick := time.NewTicker(standbyEvery)
	defer tick.Stop()
	for first := true; ; first = false {
		if b.err = b.index.Update(b.ctx, nil); b.err != nil {
			return
		}
		b.progress.Store(&StandbyProgress{Complete: true, Jobs: b.index.Jobs(), Entry: b.index.Entry()})
		if first {
			loaded(b.index.Jobs())
		}
		select {
		case <-tick.C:
		case <-b.take:
			return
		case <-b.ctx.Done():
			return
		}
	}
}

// errTaken is returned to a second engine that uses the same Standby.
var errTaken = errors.New("the standby has been used or stopped")

// machine waits until the index is complete and returns the machine for an engine. Nothing may be applied to the store
// meanwhile.
func (b *Standby) machine(o machine.Options) (m *machine.Machine, _ error) {
	err := errTaken
	b.once.Do(func() {
		defer b.index.Close()
		close(b.take)
		<-b.done
		if err = b.err; err == nil {
			m, err = b.index.TakeOver(b.ctx, o)
		}
	})
	return m, err
}

// Stop ends the standby. An engine that waits for it gets an error.
func (b *Standby) Stop() {
	b.cancel()
	<-b.done
	b.once.Do(b.index.Close)
}
