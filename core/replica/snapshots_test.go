package replica

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"broker/core/clock"
)

// A snapshot of a node's own store takes as long as the flush of the store, even right after a change of members, whose index no entry
// of the store has. It must not be mistaken for a stalled copy, so no connection is closed.
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
