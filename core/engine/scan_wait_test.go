package engine_test

import (
	"testing"

	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/core/notify"
)

// A list with conditions that need records depends on commits like any other list: the commits wake its client.
func TestScannedListsAreWokenByTheirCommit(t *testing.T) {
	t.Parallel()
	e, err := engine.Open(engine.Options{Dir: "data", FS: coretest.MemoryFS(), ManualTimers: true, ManualCommits: true})
	if err != nil {
		t.Fatal(err)
	}
	submitter := e.Open(core.ClientOptions{Protocol: core.Gearman, Wake: func() {}})
	woken := notify.NewSignal()
	reader := e.Open(core.ClientOptions{Protocol: core.HTTP, Wake: woken.Set})
	e.Do(submitter, []core.Op{&core.Submit{Job: &core.Job{Queue: "q", Origin: core.Gearman}}}, nil)
	replies := e.Do(reader, []core.Op{&core.Find{Filter: core.Filter{Text: "q"}}}, nil)
	if len(replies) != 1 || len(replies[0].Jobs) != 1 || replies[0].Commit <= e.Committed() {
		t.Fatalf("%+v", replies)
	}
	select {
	case <-woken: // by the reply itself
	default:
	}
	e.Flush()
	if replies[0].Commit > e.Committed() {
		t.Fatal("the commit is not durable after Flush")
	}
	select {
	case <-woken:
	default:
		t.Error("the client is not woken")
	}
	if err := e.Shutdown(); err != nil {
		t.Fatal(err)
	}
}
