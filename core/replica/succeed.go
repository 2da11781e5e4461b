package replica

import (
	"cmp"
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
)

// When a process dies, its connections close, so its followers need not wait for a missing heartbeat. A follower whose
// connection from the leader has ended calls the leader. If no process listens there, or the process does not lead, the
// follower asks the other voters whether they find the same. If a majority agrees, the voter with the longest log
// begins an election at once; with equal logs, the first by id does. A leader that still runs only loses its
// leadership: the next leader waits for its lease to end.

const (
	goneWithin = 250 * time.Millisecond // time limit of a call that checks the leader
	goneTries  = 3                      // the other voters may need a moment
	goneAgain  = 30 * time.Millisecond
)

// findings are the answer of a member that was asked about a leader.
type findings struct {
	Gone  bool   `json:"gone"`
	Term  uint64 `json:"term"`  // of its last entry
	Index uint64 `json:"index"` // of its last entry
}

// compareLogs compares the logs of two members: the longer one is greater.
func (f findings) compareLogs(o findings) int {
	return cmp.Or(cmp.Compare(f.Term, o.Term), cmp.Compare(f.Index, o.Index))
}

// watchLeader checks the leader whenever a connection from it has ended.
func (n *Node) watchLeader() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := context.AfterFunc(n.stream.done, cancel)
	defer stop()
	for {
		select {
		case id := <-n.left:
			for try := 0; try < goneTries && n.LeaderID() == id && !n.electSuccessor(ctx, id); try++ {
				n.sleep(goneAgain)
			}
		case <-n.closed:
			return
		}
	}
}

// connectionEnded is called when a connection from another member has ended. It does not block.
func (n *Node) connectionEnded(from string) {
	if !n.isRunning() || n.LeaderID() != from {
		return
	}
	select {
	case n.left <- from:
	default: // a check is already waiting
	}
}

// electSuccessor begins an election if the leader is gone and this node should lead next; false: that is not certain.
func (n *Node) electSuccessor(ctx context.Context, leader string) bool {
	term := n.raft.CurrentTerm()
	own := n.checkLeader(ctx, leader)
	if !own.Gone {
		return false
	}
	voters, found, first := 0, 1, true
	type reply struct {
		id string
		findings
	}
	replies := make(chan reply, len(n.servers()))
	asked := 0
	votes := false
	for _, s := range n.servers() {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		votes = votes || string(s.ID) == n.o.ID
		if id := string(s.ID); id != n.o.ID && id != leader {
			asked++
			go func() { // ends within goneWithin
				ask := &request{Op: opGone, Leader: leader, Term: term}
				r, err := n.call(ctx, Member{ID: id, Address: string(s.Address)}, ask, 2*goneWithin)
				if err != nil || r.Findings == nil {
					replies <- reply{id: id}
					return
				}
				replies <- reply{id, *r.Findings}
			}()
		}
	}
	for range asked {
		r := <-replies
		if !r.Gone {
			continue
		}
		found++
		if more := r.compareLogs(own); more > 0 || more == 0 && r.id < n.o.ID {
			first = false
		}
	}
	if !votes || found <= voters/2 || n.raft.CurrentTerm() != term {
		return false
	}
	if first {
		n.log.Warn("the leader is gone, this node begins an election", "leader", leader, "term", term)
		n.campaign()
	}
	return true
}

// checkLeader checks a leader, and returns the result with the end of this node's log.
func (n *Node) checkLeader(ctx context.Context, leader string) findings {
	f := findings{Index: n.raft.LastIndex()}
	var last raft.Log
	if n.logs.GetLog(f.Index, &last) == nil { // the entry may be in a copy of the store only
		f.Term = last.Term
	}
	m, there := find(n.Members(), leader)
	if !there {
		return f
	}
	r, err := n.call(ctx, m, &request{Op: opStatus}, goneWithin)
	f.Gone = errors.Is(err, syscall.ECONNREFUSED) || err == nil && r.Status != nil && r.Status.Role != "leader"
	return f
}

// campaign makes this node a candidate. It uses the call by which a leader transfers leadership.
func (n *Node) campaign() {
	request := &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{
		ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(n.o.ID), Addr: []byte(n.self.Address),
	}}
	if err := n.trans.TimeoutNow(raft.ServerID(n.o.ID), raft.ServerAddress(n.self.Address), request,
		&raft.TimeoutNowResponse{}); err != nil {
		n.log.Warn("no election could be begun", "error", err.Error())
	}
}
