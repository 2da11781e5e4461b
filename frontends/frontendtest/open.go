package frontendtest

import (
	"testing"

	"broker/core/coretest"
	"broker/core/engine"
)

// Setting changes the options of the broker of a stage.
type Setting func(*engine.Options)

// Open builds a stage on a real engine with a memory disk. Timers fire in Stage.Advance only, and random choices are
// the same in every run.
func Open(t testing.TB, maker Maker, settings ...Setting) *Stage {
	t.Helper()
	clk := coretest.NewClock()
	o := engine.Options{
		Dir: "data", FS: coretest.MemoryFS(), Durability: engine.Sync, Clock: clk, Seed: 1, ManualTimers: true,
	}
	for _, set := range settings {
		set(&o)
	}
	var current *engine.Engine
	start := func() Backend {
		t.Helper()
		if current != nil {
			if err := current.Shutdown(); err != nil {
				t.Fatalf("stop the broker: %v", err)
			}
		}
		e, err := engine.Open(o)
		if err != nil {
			t.Fatalf("start the broker: %v", err)
		}
		current = e
		return e
	}
	s := NewStage(t, start(), clk, maker, start)
	t.Cleanup(func() {
		if err := current.Shutdown(); err != nil {
			t.Errorf("stop the broker: %v", err)
		}
	})
	return s
}

// InMemory is a Setting for a broker without storage: it opens quickly, and replies are never held back.
func InMemory(o *engine.Options) { o.Durability = engine.None }

// NeverCommits is a Setting for a disk that never syncs, so replies that need a commit are never sent.
func NeverCommits(o *engine.Options) { o.ManualCommits = true }

// PlayAll plays every .wire file in testdata, for a protocol without packets by name.
func PlayAll(t *testing.T, maker Maker) {
	t.Helper()
	Script{Stage: func(t testing.TB) *Stage { return Open(t, maker) }}.PlayAll(t, "testdata")
}
