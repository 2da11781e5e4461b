package replica

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"

	"broker/core/coretest"
	"broker/core/internal/store"
)

// A former leader has entries after its snapshot that no other member has. It must know the last entry of the snapshot,
// or it refuses all entries of every other leader, and a copy does not help.
func TestFollowerKnowsTheTermOfItsSnapshot(t *testing.T) {
	t.Parallel()
	l, err := store.OpenLog(store.Options{FS: coretest.MemoryFS(), Dir: "log"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // in memory
	follows := true
	s := &logStore{log: l, anchor: func() (index, term uint64, ok bool) { return 7, 3, follows }}
	if err := s.StoreLog(&raft.Log{Index: 8, Term: 4, Type: raft.LogNoop}); err != nil {
		t.Fatal(err)
	}
	var got raft.Log
	if err := s.GetLog(7, &got); err != nil || got.Index != 7 || got.Term != 3 {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := s.StoreLog(&got); err == nil {
		t.Error("an entry without content was stored")
	}
	for _, index := range []uint64{6, 9} {
		if err := s.GetLog(index, &got); !errors.Is(err, raft.ErrLogNotFound) {
			t.Errorf("entry %d: %v", index, err)
		}
	}
	follows = false
	if err := s.GetLog(7, &got); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("a leader has the entry: %+v, %v", got, err)
	}
	if err := s.GetLog(8, &got); err != nil || got.Term != 4 {
		t.Errorf("the entry of the log: %+v, %v", got, err)
	}
}
