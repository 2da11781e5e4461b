package remote

import (
	"errors"
	"math"
	"slices"
	"sync/atomic"

	"broker/core"
)

// expect is an answer to what the broker has asked for a client. check is called with the client's lock held; what it
// returns is called without.
type expect struct {
	check func(answer list) (after func())
}

// settled counts an answer that the broker has waited for.
func (u *Uplink) settled() {
	if u.pending.Add(-1) == 0 {
		u.progress.Set()
	}
}

// takeOver continues the clients at the leader. It ends with the link, or when clients are served.
//
//	register   clients, their queues and listeners, jobs that only they know ──▶
//	           what front-ends have registered; then their questions without an answer ──▶
//	           joins and leases, which the leader keeps until all nodes have registered ──▶
//	           ◀── the leader serves
//	continue   what is lost, what waits, what had no answer ──▶
func (u *Uplink) takeOver() {
	b := u.broker
	u.begin()
	u.begun.Store(true)
	for _, c := range u.all() {
		if !u.register(c) {
			c.drop()
		}
	}
	u.registerLeft()
	u.askFirst()
	u.link.send(msgRegistered, nil)
	if !u.await(func() bool { return u.serves.Load() && u.pending.Load() == 0 }) {
		return
	}
	b.mu.Lock()
	var drops []*client
	for _, c := range b.sorted() {
		if !u.resume(c) {
			drops = append(drops, c)
		}
	}
	u.live = true
	u.closeLeft()
	if b.away != nil {
		b.away.Stop()
		b.away = nil
	}
	b.mu.Unlock()
	dropEach(drops)
	close(u.ready)
	if u.await(func() bool { return u.pending.Load() == 0 }) {
		u.thaw(core.Commit(u.depends.Load()))
	}
}

func dropEach(all []*client) {
	for _, c := range all {
		c.drop()
	}
}

// await waits until something is so. It returns false if the link has ended.
func (u *Uplink) await(is func() bool) bool {
	for !is() {
		select {
		case <-u.progress:
		case <-u.link.ended:
			return false
		}
	}
	return true
}

// all are all clients.
func (u *Uplink) all() []*client {
	u.broker.mu.RLock()
	defer u.broker.mu.RUnlock()
	return u.broker.sorted()
}

// begin makes this link the broker's, and finds out what is lost.
func (u *Uplink) begin() {
	b := u.broker
	b.mu.Lock()
	before := b.up
	b.up = u
	b.current.Store(u)
	b.mu.Unlock()
	if before == nil {
		return
	}
	u.same = before.past.term == u.past.term
	sure, known := u.survived(before)
	shown := sure + core.Commit(before.shift)
	if u.same {
		shown = math.MaxUint64 // nothing is lost
	}
	for _, c := range append(u.all(), &b.left) {
		u.close(c, shown)
	}
	if u.same {
		u.shift = before.shift
		return
	}
	b.unsureMu.Lock()
	b.highest = max(b.highest, b.committed.Load())
	u.shift = b.highest
	unsure := b.unsure
	b.unsure = nil
	b.unsureMu.Unlock()
	for _, a := range unsure {
		if a.commit > sure && (!known || !u.lose(a, shown)) {
			a.client.drop()
		}
	}
}

// survived is the last commit of the leader before that this leader has. known is false if another one has led in
// between: then only what was told is certain.
func (u *Uplink) survived(before *Uplink) (commit core.Commit, known bool) {
	before.commits.Lock()
	defer before.commits.Unlock()
	if u.past.lastTerm <= before.past.term {
		return max(core.Commit(u.past.before), before.told), true
	}
	return before.told, false
}

// close takes in the last that the leader before has said to a client. sure is the last commit that is not lost, as
// clients see it.
func (u *Uplink) close(c *client, sure core.Commit) {
	b := u.broker
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked.Store(0)
	c.expects = nil
	if c.answer.replies != nil && c.say != nil {
		b.read(c)
	}
	u.look(c)
	if !u.same {
		c.kept.dropStored(sure)
		c.kept.lose(b.Committed())
	}
	pushed := c.decodeAll(b, c.pushed, slices.Clone(c.ready))
	c.pushed = nil
	c.ready = slices.DeleteFunc(pushed, func(r core.Reply) bool {
		switch r.Kind { //nolint:exhaustive // jobs go back, and waits go on
		case core.Progressed, core.DataSent, core.Warned, core.EventReply:
			return false
		case core.Ended:
			return r.Commit > sure
		case core.Assigned:
			if l := c.kept.lease; l != nil && l.Tag == r.Tag && l.Holder != core.HeldByConn {
				c.back = append(c.back, &core.Release{Ref: core.Ref{Seq: r.Seq}, Epoch: r.Lease.Epoch})
			}
		}
		return true
	})
	b.pushed(c, c.ready)
}

// look finds out what the history has of a message without a reply. It does so before this link gives out numbers. What
// has nothing to tell is taken for answered. The client's lock is held.
func (u *Uplink) look(c *client) {
	if c.say == nil || c.number == 0 || c.trace != untraced {
		return
	}
	switch {
	case c.number > u.past.applied:
		c.trace = absent
	case c.number == u.past.applied, u.same: // the same leader can still lose it
		c.trace = begun
	default:
		c.trace = whole
		rest, done, known := remaining(c.ops, c.options.Protocol)
		if !known || len(done) == 0 {
			return
		}
		for _, op := range done {
			u.broker.note(&c.kept, []core.Op{op}, []core.Reply{{Kind: core.Accepted, Tag: op.TagOf(), Seq: endOf(op)}})
		}
		c.ops, c.say.buf = rest, c.say.buf[:0]
		unsigned(c.say, &c.id)
		operations(c.say, &rest)
	}
}

// lose sorts the operations of a message whose answer depends on a commit that is lost. It returns false if the client
// must not be told what it was to be told. sure is as for close.
func (u *Uplink) lose(a *asked, sure core.Commit) bool {
	c := a.client
	ops, replies := a.decode(u.broker)
	c.mu.Lock()
	defer c.mu.Unlock()
	answered := pairsOf(ops)
	for i := range replies {
		r := &replies[i]
		var op core.Op
		if at := answered.find(r.Tag); at >= 0 {
			op = ops[at]
		}
		if r.Commit <= sure {
			continue
		}
		l, ends := a.endedBy(r)
		l = l.lost(u.broker.Committed())
		if ends && (l.left || c.gone) {
			u.broker.restore(r.Seq, l)
		}
		switch {
		case c.gone:
		case r.Kind == core.Assigned: // kept.leases has it
		case op == nil, fateOf(op) == reads && repliesTo(r.Tag, replies) > 1:
			return false
		case fateOf(op) != registers && fateOf(op) != never:
			c.lost = append(c.lost, &lost{op: op, reply: *r})
			if ends && !l.left {
				c.kept.restore(r.Seq, l)
			}
		}
	}
	return true
}

// endedBy returns the lease that an operation with a reply has ended.
func (a *asked) endedBy(r *core.Reply) (l held, ends bool) {
	for _, e := range slices.Backward(a.ended) {
		if e.seq == r.Seq {
			return e.held, true
		}
	}
	return held{}, false
}

// repliesTo counts the replies to an operation.
func repliesTo(tag uint64, replies []core.Reply) (n int) {
	for i := range replies {
		if replies[i].Tag == tag {
			n++
		}
	}
	return n
}

// decode returns the operations and the replies of a message.
func (a *asked) decode(b *Broker) ([]core.Op, []core.Reply) {
	if a.say == nil {
		return a.ops, a.replies
	}
	c := coder{buf: a.say.buf, reading: true}
	var id core.ClientID
	var ops []core.Op
	unsigned(&c, &id)
	operations(&c, &ops)
	return ops, b.decode(a.answer, nil)
}

// register registers a client with the leader. It returns false if it can not be.
func (u *Uplink) register(c *client) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return true
	}
	u.open(c)
	first, whole := c.kept.first()
	submits, certain := c.lostSubmissions(u.past.applied)
	if !whole || !certain {
		return false
	}
	for _, l := range submits {
		first = append(first, l.op)
	}
	if len(first) > 0 {
		number := u.do(c, msgDo, first, func(answer list) func() { return u.registered(c, submits, answer) })
		for _, l := range submits {
			l.number = number
		}
	}
	c.kept.dropEnded(u.broker.Now(), u.broker.Committed())
	joins, leases := c.kept.second(u.same)
	if len(joins) > 0 {
		u.do(c, msgLater, joins, func(answer list) func() { return u.registered(c, nil, answer) })
	}
	leases, c.back = append(leases, c.back...), nil
	if len(leases) > 0 {
		u.do(c, msgLater, leases, func(answer list) func() { return u.leased(c, answer) })
	}
	return true
}

// lostSubmissions are the submissions to ask again before anything is leased: they get their numbers again. applied is
// the number of the last message with changes that the leader has. Nobody knows the reply to an operation that was
// asked again and applied, but whose answer has not come.
func (c *client) lostSubmissions(applied uint64) (all []*lost, certain bool) {
	kept := make([]*lost, 0, len(c.lost))
	for _, l := range c.lost {
		if l.number != 0 && l.number <= applied {
			return nil, false
		}
		l.number = 0
		op, is := l.op.(*core.Submit)
		if is && c.kept.watches[op.Tag] != nil {
			continue // it is registered again
		}
		kept = append(kept, l)
		if is && l.reply.Kind == core.Submitted && !l.reply.Existing {
			op.Again, op.Job.Seq, op.Job.CreatedAt = core.AgainAdmit, l.reply.Seq, createdAt(&l.reply)
			all = append(all, l)
		}
	}
	c.lost = kept
	return all, true
}

// do asks the leader for a client, and expects an answer. The client's lock is held.
func (u *Uplink) do(c *client, kind byte, ops []core.Op, check func(list) func()) (number uint64) {
	w := coder{}
	unsigned(&w, &c.id)
	operations(&w, &ops)
	u.pending.Add(1)
	c.expects = append(c.expects, expect{check})
	if kind == msgDo {
		return u.number(w.buf)
	}
	u.link.send(kind, w.buf)
	return 0
}

// forget stops expecting answers for a client that has left. Its lock is held.
func (u *Uplink) forget(c *client) {
	u.pending.Add(int64(-len(c.expects)))
	c.expects = nil
	u.progress.Set()
}

// registered is the answer to a registration.
func (u *Uplink) registered(c *client, submits []*lost, answer list) (after func()) {
	replies := c.decode(u.broker, answer, nil)
	answered := lostPairs(submits)
	for i := range replies {
		r := &replies[i]
		at := answered.find(r.Tag)
		switch {
		case at >= 0:
			if !u.found(c, submits[at], r) {
				return c.drop
			}
		case r.Kind == core.Failed:
			return c.drop
		case r.Kind == core.Submitted:
			if w := c.kept.watches[r.Tag]; w != nil && w.seq != r.Seq {
				return c.drop
			}
		case r.Kind > core.Answered:
			after = u.give(c, r)
		}
	}
	return after
}

// give gives a reply to a client that came with an answer for the broker.
func (u *Uplink) give(c *client, r *core.Reply) (after func()) {
	u.broker.pushed(c, []core.Reply{*r})
	c.ready = append(c.ready, *r)
	return c.options.Wake
}

// found is the reply to an operation that was lost. It returns false if it is not what the client was told.
func (u *Uplink) found(c *client, l *lost, r *core.Reply) bool {
	c.lost = slices.DeleteFunc(c.lost, func(o *lost) bool { return o == l })
	var ended []endedLease
	u.broker.noteReply(&c.kept, l.op, r, &ended)
	if u.dependsOn(r.Commit) {
		same := l.reply
		same.Commit = r.Commit
		u.broker.doubt(&asked{
			client: c, commit: r.Commit - core.Commit(u.shift), ended: ended,
			ops: []core.Op{l.op}, replies: []core.Reply{same},
		}, r.Commit)
	}
	return sameReply(l.op, &l.reply, r)
}

// leased is the answer to leases that continue, and to jobs that go back. A lease that does not continue has ended: a
// client without a time limit does not expect that, nor one that is still to be told that it has the job. A job that is
// not there may be lost with the leader, and come back with its client's node: a worker that had it would be told of an
// end which is none. One that has left with its request has no connection to close: it may be told that.
func (u *Uplink) leased(c *client, answer list) (after func()) {
	replies := c.decode(u.broker, answer, nil)
	for i := range replies {
		r := &replies[i]
		if r.Kind > core.Answered {
			after = u.give(c, r)
		}
		l, has := c.kept.leases[r.Tag]
		if !has {
			continue
		}
		told := l.shown <= u.broker.Committed()
		if r.Kind == core.Failed {
			delete(c.kept.leases, r.Tag)
			if c != &u.broker.left && (l.until == 0 || !told || errors.Is(r.Err, core.ErrNotFound)) {
				return c.drop
			}
			continue
		}
		if l.stored = r.Commit; !told {
			l.shown = r.Commit
			u.dependsOn(r.Commit)
		}
		c.kept.leases[r.Tag] = l
	}
	return after
}

// resume continues what a client had under way. It returns false if nobody knows what the client is to be told. The
// broker's lock is held.
func (u *Uplink) resume(c *client) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return true
	}
	if c.up != u {
		u.open(c)
	}
	if lost := slices.Clone(c.lost); len(lost) > 0 {
		u.askLost(c, lost)
	}
	if waits := c.kept.waits(); len(waits) > 0 {
		u.do(c, msgWait, waits, func(answer list) func() {
			c.pushed = append(c.pushed, answer)
			return c.options.Wake
		})
	}
	switch {
	case c.say == nil:
	case c.number != 0 && !again(c.ops, c.trace >= begun):
		return false
	case len(c.ops) == 0:
		c.say.recycle()
		c.ops, c.say, c.number = nil, nil, 0
		c.done.Set()
	default:
		u.ask(c)
	}
	return true
}

// askLost asks operations again.
func (u *Uplink) askLost(c *client, all []*lost) {
	ops := make([]core.Op, len(all))
	for i, l := range all {
		ops[i] = l.op
	}
	number := u.do(c, msgDo, ops, func(answer list) (after func()) {
		replies := c.decode(u.broker, answer, nil)
		answered := lostPairs(all)
		for i := range replies {
			r := &replies[i]
			at := answered.find(r.Tag)
			switch {
			case at < 0:
				after = u.give(c, r)
			case !u.found(c, all[at], r):
				return c.drop
			}
		}
		return after
	})
	for _, l := range all {
		l.number = number
	}
}

// dependsOn makes clients wait for a commit, as they see it, and reports whether it was not told yet.
func (u *Uplink) dependsOn(commit core.Commit) bool {
	waits := commit > u.broker.Committed()
	if waits {
		raise(&u.depends, uint64(commit)-u.shift)
	}
	return waits
}

// raise raises a number to at least n.
func raise(to *atomic.Uint64, n uint64) {
	for now := to.Load(); now < n && !to.CompareAndSwap(now, n); now = to.Load() {
	}
}
