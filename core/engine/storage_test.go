package engine

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"broker/core"
	"broker/core/coretest"
)

func TestStorageCountsAndChecksStoredJobs(t *testing.T) {
	t.Parallel()
	e, err := Open(Options{
		Dir: "data", FS: coretest.MemoryFS(), Clock: coretest.NewClock(), Seed: 1, ManualTimers: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Shutdown() }() // nothing to lose
	c := e.Open(core.ClientOptions{Protocol: core.Faktory, Wake: func() {}})
	const jobs = 500
	ops := make([]core.Op, jobs)
	for i := range ops {
		ops[i] = &core.Submit{Job: &core.Job{
			Queue: "q", Origin: core.Faktory, Body: []byte(strings.Repeat("x", 10_000)),
		}}
	}
	e.Do(c, ops, nil)
	e.Flush()
	s, err := e.Storage()
	if err != nil {
		t.Fatal(err)
	}
	if s.Commits.Count() == 0 || s.DiskBytes == 0 || len(s.Levels) != 7 {
		t.Errorf("storage %+v", s)
	}
	r, err := e.CheckStore(t.Context(), func(float64) {})
	if err != nil || r.Bodies != jobs || len(r.Damage) > 0 || len(r.Orphans) > 0 {
		t.Errorf("report %+v, %v", r, err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.CheckStore(cancelled, func(float64) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("a check that was cancelled: %v", err)
	}
}

// Jobs with bodies of their own come and go while the store is checked: none of them may look like an orphan.
func TestCheckStoreSeesOneState(t *testing.T) {
	t.Parallel()
	e, err := Open(Options{
		Dir: "data", FS: coretest.MemoryFS(), Clock: coretest.NewClock(), Seed: 1, ManualTimers: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Shutdown() }() // nothing to lose
	idle := make([]core.Op, 5000)
	for i := range idle {
		idle[i] = &core.Submit{Job: &core.Job{Queue: "idle", Origin: core.Faktory}}
	}
	e.Do(e.Open(core.ClientOptions{Protocol: core.Faktory, Wake: func() {}}), idle, nil)
	ctx, stop := context.WithCancel(t.Context())
	var churn sync.WaitGroup
	churn.Go(func() {
		c := e.Open(core.ClientOptions{Protocol: core.Faktory, Wake: func() {}})
		for ctx.Err() == nil {
			ops := make([]core.Op, 20)
			for i := range ops {
				ops[i] = &core.Submit{Job: &core.Job{
					Queue: "q", Origin: core.Faktory, Body: []byte(strings.Repeat("x", 10_000)),
				}}
			}
			e.Do(c, ops, nil)
			e.Flush()
			e.Do(c, []core.Op{&core.Purge{Queue: "q", Limit: 19}}, nil)
			e.Flush()
		}
	})
	for range 20 {
		if r, err := e.CheckStore(t.Context(), func(float64) {}); err != nil || len(r.Damage) > 0 ||
			len(r.Orphans) > 0 {
			t.Errorf("report %+v, %v", r, err)
		}
	}
	stop()
	churn.Wait()
}
