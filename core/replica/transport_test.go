package replica

import (
	"bytes"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"broker/core/clock"
)

// unreachable is a network without any answer.
type unreachable struct{ closed chan struct{} }

func (u unreachable) Accept() (net.Conn, error) { <-u.closed; return nil, net.ErrClosed }
func (u unreachable) Close() error              { close(u.closed); return nil }
func (u unreachable) Addr() net.Addr            { return address("nowhere") }
func (u unreachable) Dial(raft.ServerAddress, time.Duration) (net.Conn, error) {
	return nil, errors.New("unreachable")
}

// A failed call returns when the member answers a heartbeat, or once its result is no longer needed. So raft counts one
// failure, however long a member is away.
func TestFailedCallReturnsWithTheNextHeartbeat(t *testing.T) {
	t.Parallel()
	entries := func(tr *transport) error {
		return tr.AppendEntries("n2", "n2", &raft.AppendEntriesRequest{Term: 1, PrevLogEntry: 7},
			&raft.AppendEntriesResponse{})
	}
	snapshot := func(tr *transport) error {
		return tr.InstallSnapshot("n2", "n2", &raft.InstallSnapshotRequest{Term: 1}, &raft.InstallSnapshotResponse{},
			bytes.NewReader(nil))
	}
	for name, call := range map[string]func(*transport) error{"entries": entries, "a snapshot": snapshot} {
		for why, end := range map[string]func(tr *transport, wanted *atomic.Bool, done chan struct{}){
			"a heartbeat": func(tr *transport, _ *atomic.Bool, _ chan struct{}) { tr.beat("n2") },
			"the end of a lead": func(_ *transport, wanted *atomic.Bool, _ chan struct{}) {
				wanted.Store(false)
				<-time.After(wantedEvery)
			},
			"the end of a node": func(_ *transport, _ *atomic.Bool, done chan struct{}) { close(done) },
			"a late heartbeat": func(tr *transport, _ *atomic.Bool, _ chan struct{}) {
				<-time.After(time.Hour)
				tr.beat("n2")
			},
			"a second heartbeat": func(tr *transport, _ *atomic.Bool, _ chan struct{}) { tr.beat("n3"); tr.beat("n2") },
		} {
			t.Run(name+", "+why, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					var wanted atomic.Bool
					wanted.Store(true)
					done := make(chan struct{})
					tr := &transport{
						NetworkTransport: raft.NewNetworkTransport(unreachable{make(chan struct{})}, 1, time.Second,
							bytes.NewBuffer(nil)),
						isWanted: func(uint64, raft.ServerID) bool { return wanted.Load() }, done: done,
						onCopy: func(raft.ServerID) {}, hasRoom: func(raft.ServerID, int64) error { return nil },
					}
					defer func() { _ = tr.Close() }()
					result := make(chan error, 1)
					go func() { result <- call(tr) }()
					<-time.After(time.Minute)
					synctest.Wait()
					if len(result) > 0 {
						t.Fatal("a call returned while the member did not answer")
					}
					end(tr, &wanted, done)
					synctest.Wait()
					select {
					case err := <-result:
						if err == nil {
							t.Error("no error")
						}
					default:
						t.Error("the call waits still")
					}
				})
			})
		}
	}
}

func TestHeartbeatsFailAtOnce(t *testing.T) {
	t.Parallel()
	tr := &transport{NetworkTransport: raft.NewNetworkTransport(unreachable{make(chan struct{})}, 1, time.Second,
		bytes.NewBuffer(nil))}
	tr.now = (&lease{clock: clock.System{}}).now
	defer func() { _ = tr.Close() }()
	if err := tr.AppendEntries("n2", "n2", &raft.AppendEntriesRequest{Term: 1},
		&raft.AppendEntriesResponse{}); err == nil {
		t.Error("no error")
	}
}

// If a leader stops while it sends a copy of its store, the receiver can still follow another leader.
func TestStalledCopyIsGivenUp(t *testing.T) {
	t.Parallel()
	c := startedCluster(t)
	n, _, e := c.leader()
	c.caughtUp()
	m, _ := find(c.members, c.follower(n))
	configuration := n.raft.GetConfiguration().Configuration()
	stalled, end := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		sent <- n.trans.NetworkTransport.InstallSnapshot(raft.ServerID(m.ID), raft.ServerAddress(m.Address),
			&raft.InstallSnapshotRequest{
				RPCHeader:       raft.RPCHeader{ProtocolVersion: 3, ID: []byte(n.o.ID), Addr: []byte(n.self.Address)},
				SnapshotVersion: 1,
				Term:            n.raft.CurrentTerm(), LastLogIndex: n.raft.LastIndex() + 1000,
				LastLogTerm:   n.raft.CurrentTerm(),
				Configuration: raft.EncodeConfiguration(configuration), ConfigurationIndex: 1, Size: 1 << 20,
			}, &raft.InstallSnapshotResponse{}, io.MultiReader(strings.NewReader(packMagic), stalled))
	}()
	received := filepath.Join(c.nodes[m.ID].dir(snapshotsDir), "*"+unfinished)
	eventually(t, func() string {
		if all, err := filepath.Glob(received); err != nil || len(all) == 0 {
			return "the copy is not received"
		}
		return ""
	})
	submit(t, e, 0, 10, 10)
	c.caughtUp()
	if all, err := filepath.Glob(received); err != nil || len(all) > 0 {
		t.Errorf("%v %v are left", all, err)
	}
	_ = end.CloseWithError(io.ErrUnexpectedEOF) // always nil
	if err := <-sent; err == nil {
		t.Error("the copy was received")
	}
	shutdown(t, e)
}

// raft only counts the entries of a call; the transport limits their bytes, and raft continues after the last one sent.
func TestEntriesOfACallAreLimitedByBytes(t *testing.T) {
	t.Parallel()
	tr := &transport{
		NetworkTransport: raft.NewNetworkTransport(unreachable{make(chan struct{})}, 1, time.Second,
			bytes.NewBuffer(nil)),
		isWanted: func(uint64, raft.ServerID) bool { return false },
	}
	defer func() { _ = tr.Close() }()
	in := &raft.AppendEntriesRequest{Term: 1, PrevLogEntry: 7}
	for i := range uint64(64) {
		in.Entries = append(in.Entries, &raft.Log{Index: 8 + i, Data: make([]byte, partBytes)})
	}
	if err := tr.AppendEntries("n2", "n2", in, &raft.AppendEntriesResponse{}); err == nil {
		t.Error("no error")
	}
	if want := maxCallBytes / partBytes; len(in.Entries) != want {
		t.Errorf("%d entries were sent, not %d", len(in.Entries), want)
	}
}
