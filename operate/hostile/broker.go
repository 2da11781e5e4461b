package hostile

import (
	"fmt"
	"sync"
	"sync/atomic"

	"broker/core"
)

// Options of a Broker.
type Options struct {
	Log   *Log         // contains the seed and the rates
	Conns *Connections // it also wraps the listener of net/http; nil: no such listener
	Clock *Clock       // the clock of the wrapped broker; nil: it is never set
}

// Broker is a core.Broker that injects faults for all clients except internal ones.
type Broker struct {
	core.Broker
	log   *Log
	conns *Connections
	clock *Clock

	current atomic.Pointer[conn] // see usesOneClient

	mu          sync.Mutex // guards the fields below
	clients     map[core.ClientID]*client
	submissions map[string]uint64 // by queue
	plans       map[uint64]*plan  // plans of jobs with faults left, by Seq
	byID        map[string]*plan
}

// client is a client whose operations may meet faults.
type client struct {
	id       core.ClientID
	protocol core.Protocol
	conn     line // nil: it has no connection

	disturbed atomic.Int64 // a monotonic time: until then its connection was delayed, or cut
}

// disturb notes that a fault disturbs the connection until a monotonic time.
func (c *client) disturb(until core.Instant) {
	c.disturbed.Store(max(c.disturbed.Load(), int64(until)))
}

// New makes a Broker in front of another.
func New(b core.Broker, o Options) *Broker {
	if o.Conns == nil {
		o.Conns = NewConnections()
	}
	leasedAt := func(seq uint64) (since core.Instant) {
		for _, r := range core.DoOnce(b, core.Internal, &core.Inspect{Ref: core.Ref{Seq: seq}, Brief: true}) {
			if r.Kind == core.Inspected && r.Info.State == core.Leased {
				since = r.Info.LeasedAt
			}
		}
		return since
	}
	o.Log.judge.inspect.Store(&leasedAt)
	return &Broker{
		Broker: b, log: o.Log, conns: o.Conns, clock: o.Clock,
		clients: make(map[core.ClientID]*client), submissions: make(map[string]uint64),
		plans: make(map[uint64]*plan), byID: make(map[string]*plan),
	}
}

// monotonic is the time of a monotonic clock, for delays.
func (b *Broker) monotonic() core.Instant { return b.Now().Add(-b.clock.offset()) }

// Open implements core.Broker.
func (b *Broker) Open(o core.ClientOptions) core.ClientID {
	id := b.Broker.Open(o)
	if o.Protocol == core.Internal {
		return id
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clients[id] = &client{id: id, protocol: o.Protocol, conn: b.conns.find(endpoint{o.Protocol.String(), o.Address})}
	return id
}

// Close implements core.Broker.
func (b *Broker) Close(id core.ClientID) {
	b.mu.Lock()
	delete(b.clients, id)
	b.mu.Unlock()
	b.Broker.Close(id)
}

// Do implements core.Broker. It applies operations that may meet a fault, and what workers say, one by one.
func (b *Broker) Do(id core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	b.mu.Lock()
	c := b.clients[id]
	b.mu.Unlock()
	if c == nil {
		return b.Broker.Do(id, ops, into)
	}
	if at := b.current.Load(); at != nil && c.conn == nil && usesOneClient(c.protocol.String()) {
		c = &client{id: c.id, protocol: c.protocol, conn: at}
	}
	start, from := len(into), 0
	var lost *core.Complete // the last completion that was lost
	for i, op := range ops {
		switch op.(type) {
		case *core.Submit, *core.Atomic: // may meet a fault
		default:
			if said, _, _ := wordOf(op, b.Now()); said == nothing {
				continue
			}
		}
		if i > from {
			into = b.Broker.Do(id, ops[from:i], into)
		}
		from = i + 1
		if undoes(op, lost) {
			into = refuse(op, 0, core.ErrConflict, into)
			continue
		}
		var wasLost bool
		if into, wasLost = b.doOne(c, op, into); wasLost {
			lost = op.(*core.Complete) // no other operation is lost
		}
	}
	if from < len(ops) || len(ops) == 0 {
		into = b.Broker.Do(id, ops[from:], into)
	}
	for i := range into[start:] {
		if r := &into[start+i]; r.Kind == core.Assigned {
			b.assigned(c, r)
		}
	}
	return into
}

// undoes reports whether an operation would remove the job of a lost completion: Beanstalk's delete completes a job and
// removes it if nobody has it, in two operations with one tag.
func undoes(op core.Op, lost *core.Complete) bool {
	cancel, is := op.(*core.Cancel)
	return is && lost != nil && cancel.Tag == lost.Tag && cancel.Ref == lost.Ref
}

// doOne applies an operation that may meet a fault or says something of a worker. It reports whether it was a
// completion that is lost.
func (b *Broker) doOne(c *client, op core.Op, into []core.Reply) (replies []core.Reply, wasLost bool) {
	parts := []core.Op{op}
	atomic, several := op.(*core.Atomic)
	if several {
		parts = atomic.Ops
	}
	planned := make([]*plan, len(parts))
	for i, part := range parts {
		if s, submits := part.(*core.Submit); submits {
			planned[i] = b.submitting(c, s)
			if err := b.refusal(c, planned[i]); err != nil {
				return refuse(op, i, err, into), false
			}
		}
	}
	finished := b.finishing(parts)
	if reply, lost := b.loseCompletion(c, op, finished); lost {
		b.log.judge.heard(c, op, nil, b.Now(), true)
		b.disturb(c, finished, onFinish)
		return append(into, reply), true
	}
	start := len(into)
	into = b.Broker.Do(c.id, []core.Op{op}, into)
	for i := range into[start:] {
		r := &into[start+i]
		if r.Tag != op.TagOf() || r.Kind >= core.Assigned {
			continue // a push, or the reply to another operation
		}
		for _, part := range parts {
			b.log.judge.heard(c, part, r.Err, b.Now(), false)
		}
		switch {
		case r.Kind == core.Failed:
			return into, false
		case several && r.Answer != nil:
			for i := range r.Replies {
				b.submitted(c, planned[i], parts[i], &r.Replies[i])
			}
		case !several:
			b.submitted(c, planned[0], op, r)
		}
	}
	if finished != nil {
		b.disturb(c, finished, onFinish)
	}
	return into, false
}

// refuse adds the reply to an operation that is not applied.
func refuse(op core.Op, index int, err error, into []core.Reply) []core.Reply {
	r := core.Reply{Kind: core.Failed, Tag: op.TagOf(), Err: err}
	if _, several := op.(*core.Atomic); several {
		r.Answer = &core.Answer{Index: index}
	}
	return append(into, r)
}

// submitting plans the faults of a new job, and delays the job if the plan says so.
func (b *Broker) submitting(c *client, op *core.Submit) *plan {
	b.mu.Lock()
	b.submissions[op.Job.Queue]++
	n := b.submissions[op.Job.Queue]
	b.mu.Unlock()
	p := newPlan(b.log.seed, b.log.rates, c.protocol, op.Job.Queue, n)
	p.id = op.Job.ID
	if c.conn == nil {
		p.drop, p.late = never, never
	}
	if p.heldBack > 0 && op.Job.ReadyAt == 0 && !p.busy && p.drop != onRequest {
		op.Job.ReadyAt = b.Now().Add(p.heldBack)
	} else {
		p.heldBack = 0
	}
	return p
}

// refusal returns the error for a submission that the plan refuses; nil: apply it.
func (b *Broker) refusal(c *client, p *plan) error {
	switch {
	case p.drop == onRequest:
		b.log.add(Drop, p, "connection closed before the submission took effect")
		c.disturb(b.monotonic())
		c.conn.cut(0, nil)
		return core.ErrShutdown // the client will not read the reply
	case p.busy:
		b.log.add(Busy, p, "refused: the queue is full")
		return core.ErrFull
	}
	return nil
}

// submitted keeps the plan of a job that was admitted.
func (b *Broker) submitted(c *client, p *plan, op core.Op, r *core.Reply) {
	if p == nil || r.Kind != core.Submitted || r.Existing {
		return
	}
	b.mu.Lock()
	if p.seq = r.Seq; p.id == "" {
		p.id = core.MintedID(r.Seq, op.(*core.Submit).Job.CreatedAt) // at this point only submissions have plans
	}
	if p.laterFaults() {
		b.plans[r.Seq], b.byID[p.id] = p, p
	}
	b.log.judge.submitted(p.subject())
	b.mu.Unlock()
	if p.heldBack > 0 {
		b.log.add(Reorder, p, fmt.Sprintf("held back for %v", p.heldBack))
	}
	b.disturb(c, p, onSubmit)
	b.jump(p)
}

// jump sets the clock, if the plan says so.
func (b *Broker) jump(p *plan) {
	if !p.jumps || b.clock == nil {
		return
	}
	b.clock.set(p.clockOffset)
	// makes the broker read the clock, so that running leases keep their length
	core.DoOnce(b.Broker, core.Internal, &core.ReadStats{})
	side := "ahead"
	if p.clockOffset < 0 {
		side = "behind"
	}
	b.log.add(Jump, p, fmt.Sprintf("clock set to %v %s", p.clockOffset.Abs(), side))
}

// disturb delays or cuts the next output of the connection, if the plan has a fault for this stage of the job. It
// removes a plan that has no faults left.
func (b *Broker) disturb(c *client, p *plan, at stage) {
	b.mu.Lock()
	drop, late := p.drop == at, p.late == at
	if drop {
		p.drop = never
	}
	if late {
		p.late = never
	}
	if !p.laterFaults() {
		delete(b.plans, p.seq)
		delete(b.byID, p.id)
	}
	b.mu.Unlock()
	if c.conn == nil {
		return // a client inside the broker
	}
	if at == onLease && (late || drop) {
		b.log.judge.excuse(p.seq)
	}
	if late {
		c.disturb(b.monotonic().Add(p.lateBy))
		b.log.add(Late, p, fmt.Sprintf("%s delayed by %v", at, p.lateBy))
		c.conn.delay(p.lateBy)
	}
	if drop {
		c.disturb(b.monotonic())
		c.conn.cut(p.cutAt, func(sent int) {
			b.log.add(Drop, p, fmt.Sprintf("%s: connection closed after %d bytes", at, sent))
		})
	}
}

// finishing returns the plan of the job that the operations end, if it has one.
func (b *Broker) finishing(ops []core.Op) *plan {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, op := range ops {
		var ref core.Ref
		switch op := op.(type) {
		case *core.Complete:
			ref = op.Ref
		case *core.Fail:
			ref = op.Ref
		default:
			continue
		}
		if p := b.plans[ref.Seq]; p != nil {
			return p
		}
		if p := b.byID[ref.ID]; p != nil && ref.Seq == 0 {
			return p
		}
	}
	return nil
}

// loseCompletion acknowledges a completion but releases the job instead, if the plan says so.
func (b *Broker) loseCompletion(c *client, op core.Op, p *plan) (core.Reply, bool) {
	done, completes := op.(*core.Complete)
	if !completes || p == nil || keepsOutcomes(c.protocol) {
		return core.Reply{}, false
	}
	b.mu.Lock()
	planned, epoch := p.duplicate, p.epoch
	mayFinish := (done.Authority != core.ByHolder || p.holder == c.id) &&
		(done.If.LeasedAt == 0 || done.If.LeasedAt == p.leasedAt)
	b.mu.Unlock()
	if !planned || !mayFinish {
		return core.Reply{}, false
	}
	for _, r := range core.DoOnce(b.Broker, core.Internal,
		&core.Release{Tag: 1, Ref: core.Ref{Seq: p.seq}, Epoch: epoch}) {
		if r.Kind != core.Accepted {
			continue // no longer leased: the broker decides about the completion
		}
		b.mu.Lock()
		p.duplicate = false
		b.mu.Unlock()
		b.log.add(Duplicate, p, "completion acknowledged and lost: delivered again")
		return core.Reply{Kind: core.Accepted, Tag: done.Tag, Seq: p.seq, Commit: r.Commit}, true
	}
	return core.Reply{}, false
}

// usesOneClient reports whether a front-end runs the commands of all its connections with one client. Its connections
// then take turns, so that the Broker knows the connection of each command.
func usesOneClient(frontend string) bool { return frontend == core.Qless.String() }

// keepsOutcomes reports whether a front-end itself remembers complete jobs.
func keepsOutcomes(p core.Protocol) bool { return p == core.Qless || p == core.Conveyor }

// assigned records the holder of a job, and ends the lease early if the plan says so.
func (b *Broker) assigned(c *client, r *core.Reply) {
	b.log.judge.deliver(c, r, b.monotonic())
	b.mu.Lock()
	p := b.plans[r.Seq]
	if p == nil {
		b.mu.Unlock()
		return
	}
	p.holder, p.epoch, p.leasedAt = c.id, r.Lease.Epoch, r.Lease.LeasedAt
	p.id = r.Job.Identity()
	b.byID[p.id] = p
	after := p.expireAfter
	p.expireAfter = 0
	b.mu.Unlock()
	if after > 0 {
		core.DoOnce(b.Broker, core.Internal, &core.Report{
			Ref: core.Ref{Seq: r.Seq}, Authority: core.ByLeased, Heartbeat: true, LeaseUntil: b.Now().Add(after),
		})
		b.log.judge.excuse(r.Seq)
		b.log.add(Expire, p, fmt.Sprintf("lease ends after %v", after))
	}
	b.disturb(c, p, onLease)
}
