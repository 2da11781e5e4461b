package process

import (
	"bytes"
	"testing"

	"github.com/rs/zerolog"

	"broker/core/clock"
	"broker/core/coretest"
	"broker/core/engine"
)

// openEngine opens an engine with a store in memory, for the time of the test.
func openEngine(t *testing.T, clk clock.Clock) *engine.Engine {
	t.Helper()
	e, err := engine.Open(engine.Options{
		Dir: "data", FS: coretest.MemoryFS(), Clock: clk, Seed: 1, ManualTimers: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Shutdown() }) // nothing is looked at afterwards
	return e
}

// newTerm returns a term with an engine and nothing else, and its log.
func newTerm(t *testing.T) (*term, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	return &term{Process: &Process{log: zerolog.New(log)}, engine: openEngine(t, coretest.NewClock())}, log
}
