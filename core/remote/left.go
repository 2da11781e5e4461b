package remote

import (
	"encoding/binary"

	"broker/core"
)

// A client that serves one request leaves with it, and its lease goes on: the node keeps it until it is certain that
// the next leader has it. It ends with what any client of the node does to its job.

// leave keeps the leases of a client that do not end with it. The locks of the broker and of the client are held.
func (b *Broker) leave(c *client) {
	told := b.Committed()
	if c.kept.dropStored(told); len(c.kept.leases) == 0 {
		return
	}
	b.left.mu.Lock()
	defer b.left.mu.Unlock()
	k, kept := &b.left.kept, kept{}
	for seq, l := range c.kept.leases {
		if l.holder != core.HeldByConn && l.until != 0 {
			l.left, l.shown = true, 0 // nobody is to be told of it any more
			k.restore(seq, l)
			kept.restore(seq, l)
		}
	}
	if b.left.up != nil && b.left.up == b.up {
		b.up.continueLeft(&kept)
	}
	if len(k.leases) >= max(k.pruneAt, minPruned) {
		b.pruneLeft()
		k.pruneAt = 2 * len(k.leases)
	}
}

// pruneLeft drops what needs no keeping any more. The lock of left is held.
func (b *Broker) pruneLeft() {
	told := b.Committed()
	b.left.kept.dropStored(told)
	b.left.kept.dropEnded(b.Now(), told)
}

// keepsLeases reports whether there are leases of clients that have left.
func (b *Broker) keepsLeases() bool {
	b.left.mu.Lock()
	defer b.left.mu.Unlock()
	b.pruneLeft()
	return len(b.left.kept.leases) > 0
}

// takeLeft takes the lease of a job whose client has left.
func (b *Broker) takeLeft(seq uint64) (l held, has bool) {
	b.left.mu.Lock()
	defer b.left.mu.Unlock()
	l, has = b.left.kept.leases[seq]
	delete(b.left.kept.leases, seq)
	return l, has
}

// restore keeps a lease again whose end is lost: of a client, or of one that has left.
func (b *Broker) restore(seq uint64, l held) {
	if l.holder == core.HeldByConn || l.until == 0 {
		return
	}
	l.left, l.shown = true, 0
	b.left.mu.Lock()
	defer b.left.mu.Unlock()
	b.left.kept.restore(seq, l)
}

// registerLeft continues the leases of clients that have left. Those of clients that leave from now on follow.
func (u *Uplink) registerLeft() {
	b := u.broker
	b.left.mu.Lock()
	defer b.left.mu.Unlock()
	u.open(&b.left)
	b.left.kept.dropEnded(b.Now(), b.Committed())
	u.continueLeft(&b.left.kept)
}

// continueLeft continues leases. The lock of left is held.
func (u *Uplink) continueLeft(k *kept) {
	c := &u.broker.left
	if _, leases := k.second(u.same); len(leases) > 0 {
		u.do(c, msgLater, leases, func(answer list) func() { return u.leased(c, answer) })
	}
}

// closeLeft ends that: clients are served. All have been answered.
func (u *Uplink) closeLeft() {
	c := &u.broker.left
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up = nil
	u.link.send(msgClose, binary.AppendUvarint(nil, uint64(c.id)))
}
