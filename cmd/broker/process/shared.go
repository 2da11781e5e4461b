package process

import (
	"bytes"
	"encoding/json"
	"sync/atomic"

	"broker/access"
	"broker/core/remote"
	"broker/frontends"
)

// What the front-ends of two nodes say to each other goes over the link between the nodes: the name of the front-end, a
// zero byte, and what it says.

func addressed(name string, say []byte) []byte { return append(append([]byte(name), 0), say...) }

// sharedSet are the front-ends with a part that clients of all nodes share, by name.
type sharedSet map[string]frontends.Shared

// of finds the front-end that a message is for; nil: there is none.
func (all sharedSet) of(message []byte) (f frontends.Shared, name string, say []byte) {
	head, say, _ := bytes.Cut(message, []byte{0})
	return all[string(head)], string(head), say
}

// linkOwner is what the leader does for nodes that follow beside operations.
type linkOwner struct {
	*term
	shared sharedSet
}

// frontNode is a node for one front-end of the leader.
type frontNode struct {
	node *remote.Node
	name string
}

// Tell implements frontends.Node.
func (n frontNode) Tell(say []byte) { n.node.Tell(addressed(n.name, say)) }

// Told implements remote.Owner: what belongs in the audit log.
func (o linkOwner) Told(_ *remote.Node, say []byte) {
	var c access.Change
	if json.Unmarshal(say, &c) == nil {
		o.auditChange(c)
	}
}

// Asked implements remote.Owner. An unknown front-end answers nothing: the leader has said which it has.
func (o linkOwner) Asked(n *remote.Node, question []byte, answer func([]byte)) {
	f, name, say := o.shared.of(question)
	if f == nil {
		answer(nil)
		return
	}
	f.Answer(frontNode{n, name}, say, answer)
}

// Left implements remote.Owner.
func (o linkOwner) Left(n *remote.Node) {
	for name, f := range o.shared {
		f.Left(frontNode{n, name})
	}
}

// frontLeader is the leader for one front-end of a node that follows.
type frontLeader struct {
	broker *remote.Broker
	name   string
}

// Ask implements frontends.Leader.
func (l frontLeader) Ask(question []byte) ([]byte, error) {
	return l.broker.Ask(addressed(l.name, question))
}

// AskOnce implements frontends.Leader.
func (l frontLeader) AskOnce(question []byte) ([]byte, error) {
	return l.broker.AskOnce(addressed(l.name, question))
}

// Inform implements frontends.Leader.
func (l frontLeader) Inform(question []byte) { l.broker.Inform(addressed(l.name, question)) }

// hearing is what the front-ends of a node that follows hear of the leader. Before they are made they hear nothing,
// since they have no clients.
type hearing struct{ shared atomic.Pointer[sharedSet] }

func (h *hearing) hear(message []byte) {
	if all := h.shared.Load(); all != nil {
		if f, _, say := all.of(message); f != nil {
			f.Heard(say)
		}
	}
}

// register lets the front-ends register their clients with a leader.
func (h *hearing) register(ask func([]byte, func([]byte))) {
	all := h.shared.Load()
	if all == nil {
		return
	}
	for name, f := range *all {
		f.Register(func(question []byte, handle func([]byte)) { ask(addressed(name, question), handle) })
	}
}
