package replica

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"broker/core/clock"
	"broker/core/internal/record"
)

// A snapshot of a node's own store takes as long as the flush of the store, even right after a change of members, whose
// index no entry of the store has. It must not be mistaken for a stalled copy, so no connection is closed.
func TestSlowLocalSnapshotClosesNoConnection(t *testing.T) {
	t.Parallel()
	n := &Node{o: Options{Clock: clock.System{}, Dir: t.TempDir()}.withDefaults(), closed: make(chan struct{})}
	n.log, n.stream = newLogger(n.o.Log), newStream(n)
	n.snaps = &snapshots{n: n, dir: t.TempDir()}
	for _, own := range []bool{true, false} {
		near, far := net.Pipe()
		n.stream.track(near, n.stream.accepted, "")
		created, err := n.snaps.Create(1, 1000, 2, raft.Configuration{}, 999, nil)
		if err != nil {
			t.Fatal(err)
		}
		k := created.(*sink)
		first := packMagic
		if own {
			first = localSnapshot
		}
		if _, err := k.Write([]byte(first)); err != nil {
			t.Fatal(err)
		}
		const patience = time.Millisecond
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			k.watch(patience)
		}()
		_ = far.SetReadDeadline(deadlineIn(100 * patience))
		_, err = far.Read(make([]byte, 1))
		if stillOpen := errors.Is(err, os.ErrDeadlineExceeded); stillOpen != own {
			t.Errorf("own %v: connections stay open: %v (%v)", own, stillOpen, err)
		}
		if err := k.Cancel(); err != nil {
			t.Error(err)
		}
		<-watched
	}
	n.running.Wait()
}

// A crash while an old snapshot is removed leaves its folder without meta.json, or renamed. Neither keeps a node from
// starting or from being detached.
func TestNodeStartsAfterCrashWhileSnapshotIsRemoved(t *testing.T) {
	t.Parallel()
	c := newStoppedCluster(t)
	var left []string
	for _, id := range []string{"n1", "n2", "n3"} {
		for _, name := range []string{"00000000000000000000-1-1", "00000000000000000000-1-2" + unfinished} {
			dir := filepath.Join(c.dirs[id], raftDir, snapshotsDir, name)
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "rest"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			left = append(left, dir)
		}
	}
	if _, err := Detach(c.dirs["n3"]); err != nil {
		t.Error(err)
	}
	c.start("n1", "n2")
	_, _, e := c.leader()
	if n := jobs(t, e); n != 10 {
		t.Errorf("%d jobs", n)
	}
	shutdown(t, e)
	for _, dir := range left[:4] {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", dir, err)
		}
	}
}

// Old snapshots are renamed before they are removed, so a crash in between leaves none that is listed without its
// files.
func TestOldSnapshotsAreRenamedBeforeTheyAreRemoved(t *testing.T) {
	t.Parallel()
	n := &Node{o: Options{Clock: clock.System{}, Dir: t.TempDir()}.withDefaults(), closed: make(chan struct{})}
	n.log, n.stream = newLogger(n.o.Log), newStream(n)
	n.snaps = &snapshots{n: n, dir: t.TempDir()}
	for i := range uint64(keptSnapshots + 2) {
		sink, err := n.snaps.Create(1, i+1, 1, raft.Configuration{}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		content := record.AppendPosition([]byte(localSnapshot), record.Position{Number: i})
		if _, err := sink.Write(content); err != nil {
			t.Fatal(err)
		}
		if i == keptSnapshots { // it cannot be removed until its name is free
			block := filepath.Join(n.snaps.dir, oldest(t, n.snaps)+unfinished, "in the way")
			if err := os.MkdirAll(block, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := sink.Close(); err == nil {
				t.Error("a snapshot was removed under its own name")
			}
			if err := n.snaps.sweep(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := sink.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := n.snaps.all(); err != nil || len(all) != keptSnapshots {
		t.Errorf("%d snapshots, %v", len(all), err)
	}
	n.running.Wait()
}

// oldest is the id of the oldest snapshot.
func oldest(t *testing.T, s *snapshots) string {
	t.Helper()
	all, err := s.all()
	if err != nil || len(all) == 0 {
		t.Fatal(len(all), err)
	}
	return all[len(all)-1].ID
}
