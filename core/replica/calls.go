package replica

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/raft"
)

// Operations that members request from each other. On the wire; never changed.
const (
	opHello  = "hello"
	opFound  = "found"
	opAdmit  = "admit"
	opStatus = "status"
	opYield  = "yield"
	opGone   = "gone"
	opRemove = "remove"
)

// request is one call.
type request struct {
	Op      string `json:"op"`
	Cluster string `json:"cluster,omitempty"` // found
	List    string `json:"list,omitempty"`    // found
	Member  Member `json:"member,omitzero"`   // admit, remove
	Leader  string `json:"leader,omitempty"`  // gone
	Term    uint64 `json:"term,omitempty"`    // yield, gone: of the caller; yield: it has given up its lease
}

// response is the answer to a call.
type response struct {
	Error   string  `json:"error,omitempty"`
	Final   bool    `json:"final,omitempty"` // with Error: a repeated call would fail too
	Hello   *hello  `json:"hello,omitempty"`
	Status  *Status `json:"status,omitempty"`
	Cluster string  `json:"cluster,omitempty"`

	Findings *findings `json:"findings,omitempty"` // gone
}

// callError is an error that another member has returned.
type callError struct {
	by    string
	text  string
	final bool
}

func (e *callError) Error() string { return fmt.Sprintf("node %s: %s", e.by, e.text) }

// call sends a request to a member and returns the response.
func (n *Node) call(ctx context.Context, to Member, r *request, within time.Duration) (*response, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	conn, err := n.dial(ctx, to, greeting{Kind: kindCall})
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }() // all was read
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var a response
	err = writeFrame(conn, "", r)
	if err == nil {
		err = readFrame(conn, "", &a)
	}
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", to, errors.Join(context.Cause(ctx), err))
	}
	if a.Error != "" {
		return nil, &callError{by: to.ID, text: a.Error, final: a.Final}
	}
	return &a, nil
}

// finalError is an error that a repeated call would return too.
type finalError struct{ error }

// serveCall answers one request.
func (n *Node) serveCall(conn net.Conn, g *greeting) {
	defer func() { _ = conn.Close() }() // the answer was sent, or cannot be
	_ = conn.SetDeadline(deadlineIn(callTimeout))
	var r request
	if readFrame(conn, "", &r) != nil {
		return // the caller no longer waits for an answer
	}
	_ = conn.SetDeadline(deadlineIn(2 * callTimeout))
	a, err := n.answer(&r, g)
	if err != nil {
		var final finalError
		a = &response{Error: err.Error(), Final: errors.As(err, &final)}
	}
	_ = writeFrame(conn, "", a) // the caller asks again
}

func (n *Node) answer(r *request, g *greeting) (*response, error) {
	switch r.Op {
	case opHello:
		h, err := n.ownHello()
		return &response{Hello: &h}, err
	case opFound:
		return &response{}, n.promise(r, g)
	case opAdmit:
		if g.Cluster != "" && g.Cluster != n.clusterID() {
			return nil, finalError{fmt.Errorf("node %s belongs to cluster %s", g.From, g.Cluster)}
		}
		return n.admit(r.Member)
	}
	switch {
	case !n.isRunning():
		return nil, errStarting
	case g.Cluster != n.clusterID():
		return nil, errors.New("not a member of this cluster")
	}
	switch r.Op {
	case opYield:
		n.yielded.Store(r.Term)
		return &response{}, nil
	case opGone:
		ctx, cancel := context.WithTimeout(context.Background(), goneWithin)
		defer cancel()
		f := n.checkLeader(ctx, r.Leader)
		if r.Term != 0 && n.raft.CurrentTerm() > r.Term {
			f.Gone = false // an election has begun that the caller does not know
		}
		return &response{Findings: &f}, nil
	case opRemove:
		return &response{}, n.Remove(context.Background(), r.Member.ID, func() error { return errNotLeader })
	case opStatus:
		s := n.status()
		return &response{Status: &s}, nil
	}
	return nil, fmt.Errorf("unknown operation %q", r.Op)
}

// admit lets a node with an empty folder take the place of a member. If the member had a vote, it loses the vote first,
// because the node has forgotten its votes and acknowledged entries. It gets the vote back once it has caught up.
func (n *Node) admit(m Member) (*response, error) {
	if !n.isRunning() || n.raft.State() != raft.Leader {
		return nil, errNotLeader
	}
	f := n.raft.GetConfiguration()
	if err := f.Error(); err != nil {
		return nil, err
	}
	for _, s := range f.Configuration().Servers {
		if string(s.ID) != m.ID {
			continue
		}
		if string(s.Address) != m.Address {
			return nil, finalError{fmt.Errorf("%w: the cluster knows node %s at %s, not at %s", errListsDiffer, m.ID,
				s.Address, m.Address)}
		}
		if s.Suffrage == raft.Voter {
			n.log.Warn("a member comes back with an empty folder, it has no vote until it has caught up", "node", m.ID)
			if err := n.raft.DemoteVoter(s.ID, f.Index(), callTimeout).Error(); err != nil {
				return nil, fmt.Errorf("take the vote from %s: %w", m.ID, err)
			}
		}
		return &response{Cluster: n.clusterID()}, nil
	}
	return nil,
		finalError{fmt.Errorf("node %s is not a member of this cluster: run broker cluster add %s first", m.ID, m)}
}
