package store

import (
	"testing"

	"broker/core"
	"broker/core/coretest"
	"broker/core/internal/record"
)

func TestSyncsAreCountedAndTimed(t *testing.T) {
	t.Parallel()
	s, err := Open(Options{Dir: "data", FS: coretest.MemoryFS()})
	if err != nil {
		t.Fatal(err)
	}
	before := s.SyncLatency()
	for range 3 {
		if err := s.Commit(&record.CommitBatch{Meta: []core.MetaEntry{{Name: "a", Value: []byte("b")}}}); err != nil {
			t.Fatal(err)
		}
	}
	after := s.SyncLatency()
	if got := after.Count - before.Count; got < 3 {
		t.Errorf("%d syncs counted for 3 commits", got)
	}
	if after.Seconds < before.Seconds || len(after.UpTo) == 0 {
		t.Errorf("syncs are not timed: %+v", after)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if l := s.SyncLatency(); l.Count != 0 {
		t.Errorf("a closed store tells of %d syncs", l.Count)
	}
}
