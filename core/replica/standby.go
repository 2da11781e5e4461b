package replica

import (
	"sync"

	"broker/core/engine"
)

// standby holds the index of this node's store while another node leads, so that an engine starts at once when this
// node wins an election.
type standby struct {
	mu      sync.Mutex // guards the fields below
	index   *engine.Standby
	leading bool // the engine has the index
	closing bool
}

// startStandby starts to read the store, unless this node leads or is being closed.
func (n *Node) startStandby() {
	b := &n.standby
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.index != nil || b.leading || b.closing {
		return
	}
	started := n.now()
	b.index = engine.NewStandby(n.store.Load(), standbyClock{n}, func(jobs int) {
		n.log.Info("ready to lead", "jobs", jobs, "took_ms", n.now().Sub(started).Milliseconds())
	})
}

// stopStandby stops reading the store before the store is replaced or closed.
func (n *Node) stopStandby() {
	b := &n.standby
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.index != nil {
		b.index.Stop()
		b.index = nil
	}
}

// closeStandby is stopStandby for good.
func (n *Node) closeStandby() {
	n.standby.mu.Lock()
	n.standby.closing = true
	n.standby.mu.Unlock()
	n.stopStandby()
}

// warmth reports whether an engine of this node has the index of all jobs, or could get it at once, and by how many
// entries the index is behind the store.
func (n *Node) warmth() (warm bool, jobs int, lag uint64) {
	b := &n.standby
	b.mu.Lock()
	index := b.index
	b.mu.Unlock()
	if index == nil {
		return n.serving.Load(), 0, 0 // the engine has it
	}
	p, end := index.Progress(), n.store.Load().Position().Number
	return p.Complete, p.Jobs, end - min(end, p.Entry)
}

// takeStandby returns the index for an engine; nil: the engine has to read the store.
func (n *Node) takeStandby() *engine.Standby {
	b := &n.standby
	b.mu.Lock()
	defer b.mu.Unlock()
	index := b.index
	b.index, b.leading = nil, true
	return index
}

// giveBackStandby starts a new index after this node stops leading, because the engine may have decided more than was
// committed.
func (n *Node) giveBackStandby(taken *engine.Standby) {
	if taken != nil {
		taken.Stop() // no engine may have taken it
	}
	n.standby.mu.Lock()
	n.standby.leading = false
	n.standby.mu.Unlock()
	n.startStandby()
}
