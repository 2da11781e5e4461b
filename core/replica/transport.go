package replica

import (
	"io"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// transport is raft's transport with a different behaviour after failed calls. raft doubles its wait after each failed
// call, up to 10 s. In that time it does not notice that heartbeats reach the member again: the member would look
// healthy without getting entries, and a cluster that needs it for a majority would stop. So a failed call returns only
// once a heartbeat is answered, and raft counts one failure instead of many. Heartbeats are repeated every 0.3 s.
type transport struct {
	*raft.NetworkTransport

	now       func() moment
	hasRoom   func(id raft.ServerID, size int64) error // the member has room for a copy
	onCopy    func(id raft.ServerID)                   // a copy of the store is sent to the member
	onEntries func(id raft.ServerID)                   // the member has accepted entries
	// the member has answered a heartbeat that was sent then
	onHeartbeat func(term uint64, id raft.ServerID, sent moment)
	// this node leads in that term, and the member still belongs to the cluster
	isWanted func(term uint64, to raft.ServerID) bool
	done     <-chan struct{} // closed when this node is being closed

	mu    sync.Mutex // guards beats
	beats map[raft.ServerID]chan struct{}
}

var _ raft.WithPreVote = (*transport)(nil)

// wantedEvery is how often a failed call checks whether raft still wants to reach the member.
const wantedEvery = 100 * time.Millisecond

// AppendEntries implements raft.Transport.
func (t *transport) AppendEntries(
	id raft.ServerID, to raft.ServerAddress, in *raft.AppendEntriesRequest, out *raft.AppendEntriesResponse,
) error {
	if isHeartbeat(in) {
		sent := t.now()
		err := t.NetworkTransport.AppendEntries(id, to, in, out)
		if err == nil {
			t.beat(id)
		}
		if err == nil && out.Success && out.Term == in.Term {
			t.onHeartbeat(in.Term, id, sent)
		}
		return err
	}
	in.Entries = in.Entries[:fitting(in.Entries)] // raft sends the other entries with its next call
	next := t.nextBeat(id)
	err := t.NetworkTransport.AppendEntries(id, to, in, out)
	if err != nil {
		t.wait(next, in.Term, id)
	} else if out.Success {
		t.onEntries(id)
	}
	return err
}

// InstallSnapshot implements raft.Transport.
func (t *transport) InstallSnapshot(
	id raft.ServerID, to raft.ServerAddress, in *raft.InstallSnapshotRequest, out *raft.InstallSnapshotResponse,
	data io.Reader,
) error {
	next := t.nextBeat(id)
	err := t.hasRoom(id, in.Size)
	if err == nil {
		t.onCopy(id)
		err = t.NetworkTransport.InstallSnapshot(id, to, in, out, data)
	}
	if err != nil {
		t.wait(next, in.Term, id)
	}
	return err
}

// maxCallBytes limits the entries of one call, so that it passes a slow link within callTimeout. raft only counts
// entries.
const maxCallBytes = 2 << 20

// fitting is how many entries fit into one call, at least one.
func fitting(entries []*raft.Log) int {
	size := 0
	for i, l := range entries {
		if size += len(l.Data); size > maxCallBytes && i > 0 {
			return i
		}
	}
	return len(entries)
}

// isHeartbeat distinguishes a heartbeat from a call with entries, in the same way as raft.
func isHeartbeat(in *raft.AppendEntriesRequest) bool {
	return in.PrevLogEntry == 0 && in.PrevLogTerm == 0 && len(in.Entries) == 0 && in.LeaderCommitIndex == 0
}

// nextBeat returns a channel that is closed when the member answers the next heartbeat.
func (t *transport) nextBeat(id raft.ServerID) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.beats[id] == nil {
		if t.beats == nil {
			t.beats = make(map[raft.ServerID]chan struct{})
		}
		t.beats[id] = make(chan struct{})
	}
	return t.beats[id]
}

// beat records that a member has answered a heartbeat.
func (t *transport) beat(id raft.ServerID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if next := t.beats[id]; next != nil {
		close(next)
		delete(t.beats, id)
	}
}

// wait waits for the next heartbeat of a member, as long as raft wants to reach it.
func (t *transport) wait(next <-chan struct{}, term uint64, id raft.ServerID) {
	tick := time.NewTicker(wantedEvery)
	defer tick.Stop()
	for {
		select {
		case <-next:
			return
		case <-t.done:
			return
		case <-tick.C:
			if !t.isWanted(term, id) {
				return
			}
		}
	}
}

// isReplicatingTo reports whether this node leads in the term and id is a member.
func (n *Node) isReplicatingTo(term uint64, id raft.ServerID) bool {
	return n.isRunning() && n.raft.State() == raft.Leader && n.raft.CurrentTerm() == term &&
		slices.ContainsFunc(n.servers(), func(s raft.Server) bool { return s.ID == id })
}

// renewLease extends the lease after a member has answered a heartbeat.
func (n *Node) renewLease(term uint64, id raft.ServerID, sent moment) {
	n.lease.renew(term, id, sent, n.servers())
}
