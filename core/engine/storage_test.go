package engine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"broker/core"
	"broker/core/coretest"
)

func TestStorageCountsAndChecksWhatIsStored(t *testing.T) {
	t.Parallel()
	e, err := Open(Options{Dir: "data", FS: MemoryFS(), Clock: coretest.NewClock(), Seed: 1, ManualTimers: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Shutdown() }() // nothing to lose
	c := e.Open(core.ClientOptions{Protocol: core.Faktory, Wake: func() {}})
	const jobs = 500
	ops := make([]core.Op, jobs)
	for i := range ops {
		ops[i] = &core.Submit{Job: &core.Job{Queue: "q", Origin: core.Faktory, Body: []byte(strings.Repeat("x", 10_000))}}
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
