package access

import (
	"crypto/x509"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"broker/core"
)

// guardTag is the tag of the operations that a Guard runs for itself as a client. The guard keeps their replies.
// Sessions count their tags up from one, so none of them uses it.
const guardTag = math.MaxUint64

// Guard is a core.Broker for the connections of one protocol. It refuses operations that the principal of a connection
// may not run. A refused operation is answered Failed with core.ErrForbidden, in its place among the other replies; an
// operation without a reply stays without one. If principals are configured, a client that was opened without Admit is
// Nobody. For its own work a front-end uses Unguarded, or a client that it admits as Everyone.
type Guard struct {
	core.Broker
	control  *Control
	protocol core.Protocol
	fallback string // name of the principal of clients without credentials

	mu      sync.RWMutex // guards clients
	clients map[core.ClientID]*client
}

// client is a connection. One goroutine at a time uses it. Any goroutine may read principal.
type client struct {
	cert      *x509.Certificate
	login     *Principal // the principal whose password the client has shown; nil: none
	table     *table     // the table in which principal was found
	principal atomic.Pointer[Principal]
	queues    map[string]bool // queues for which the client has registered
	leaseBy   *table          // the table at its last Lease; nil: there were no principals
	lookups   lookups         // of the operation being checked
}

// NewGuard makes a Guard. fallback names the principal of connections that show no credentials.
func NewGuard(b core.Broker, c *Control, p core.Protocol, fallback string) *Guard {
	return &Guard{Broker: b, control: c, protocol: p, fallback: fallback, clients: make(map[core.ClientID]*client)}
}

// Unrestricted makes a Guard that knows no principals: every client may do anything.
func Unrestricted(b core.Broker, p core.Protocol) *Guard { return NewGuard(b, &Control{}, p, "") }

// Unguarded returns the broker behind the guard. A front-end uses it for its own work, not for the work of a client.
func (g *Guard) Unguarded() core.Broker { return g.Broker }

// Control finds the principals of the guard.
func (g *Guard) Control() *Control { return g.control }

// Protocol is the protocol of the guard's connections.
func (g *Guard) Protocol() core.Protocol { return g.protocol }

// Credentials are the proofs of identity of a connection. Both may be nil.
type Credentials struct {
	Certificate *x509.Certificate // verified
	Login       *Principal        // whose password the client has shown
}

// Admit opens a client whose operations are checked. It sets the protocol of the client.
func (g *Guard) Admit(o core.ClientOptions, shown Credentials) core.ClientID {
	o.Protocol = g.protocol
	if shown.Certificate != nil {
		o.Identity = shown.Certificate.Subject.String()
	}
	id := g.Open(o)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clients[id] = &client{cert: shown.Certificate, login: shown.Login}
	return id
}

// LogIn makes login the principal whose password the client has shown; nil: none. The client keeps its certificate and
// everything that it has and waits for. It is called by the goroutine that uses the client.
func (g *Guard) LogIn(id core.ClientID, login *Principal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.clients[id]; c != nil {
		g.clients[id] = &client{cert: c.cert, login: login, queues: c.queues}
	}
}

// Default is the principal of connections that show no credentials.
func (g *Guard) Default() *Principal { return g.control.Default(g.fallback) }

// PrincipalOf returns the principal of a client.
func (g *Guard) PrincipalOf(id core.ClientID) *Principal {
	if c := g.client(id); c != nil {
		return g.principal(c)
	}
	return g.control.Default("")
}

// Allowed checks a role of a client for a request that is not a core operation. If the client lacks the role, it counts
// a refusal.
func (g *Guard) Allowed(id core.ClientID, r Role) bool {
	return g.countRefused(g.PrincipalOf(id).MayAll(r))
}

// AllowedFor is Allowed for one queue.
func (g *Guard) AllowedFor(id core.ClientID, r Role, queue string) bool {
	return g.countRefused(g.PrincipalOf(id).May(r, queue))
}

// countRefused counts a request that is not allowed. It returns allowed.
func (g *Guard) countRefused(allowed bool) bool {
	if !allowed {
		g.CountRefusal()
	}
	return allowed
}

// CountRefusal counts a request that a client was not allowed to make.
func (g *Guard) CountRefusal() { g.control.CountRefusal(g.protocol) }

func (g *Guard) client(id core.ClientID) *client {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.clients[id]
}

// principal finds the principal of a client. After a reload of the settings, it looks again.
func (g *Guard) principal(c *client) *Principal {
	t := g.control.table.Load()
	if p := c.principal.Load(); p != nil && c.table == t {
		return p
	}
	p := c.login
	if p == nil {
		p = g.control.ByCertificate(c.cert)
	}
	if p == nil {
		p = g.Default()
	}
	c.table = t
	c.principal.Store(p)
	return p
}

// Close implements core.Broker.
func (g *Guard) Close(id core.ClientID) {
	g.mu.Lock()
	delete(g.clients, id)
	g.mu.Unlock()
	g.Broker.Close(id)
}

// Do implements core.Broker.
func (g *Guard) Do(id core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	if !g.control.Enabled() {
		g.follow(id, ops)
		return g.Broker.Do(id, ops, into)
	}
	c := g.client(id)
	if c == nil {
		for _, op := range ops {
			into = g.refuse(op, into)
		}
		return into
	}
	p := g.principal(c)
	if p.MayAll(Admin) {
		g.follow(id, ops)
		return g.Broker.Do(id, ops, into)
	}
	start := len(into)
	into = g.dropLostQueues(id, c, p, into)
	return g.withhold(id, c, p, g.decide(id, c, p, ops, into), start)
}

// decide applies the operations that a principal may have applied, and refuses the others in their places.
func (g *Guard) decide(id core.ClientID, c *client, p *Principal, ops []core.Op, into []core.Reply) []core.Reply {
	if len(ops) == 0 {
		return g.Broker.Do(id, nil, into)
	}
	from := 0
	for i, op := range ops {
		allowed := c.check(g.Broker, p, op)
		if c.lookups.missing && i > from { // an operation before may create it
			into = g.Broker.Do(id, ops[from:i], into)
			from, allowed = i, c.check(g.Broker, p, op)
		}
		if allowed {
			c.lookups.bind()
			continue
		}
		if i > from {
			into = g.Broker.Do(id, ops[from:i], into)
		}
		from = i + 1
		into = g.refuse(op, into)
	}
	if from < len(ops) {
		into = g.Broker.Do(id, ops[from:], into)
	}
	return into
}

// check is allows for the next operation of a client.
func (c *client) check(b core.Broker, p *Principal, op core.Op) bool {
	c.lookups.reset()
	return c.allows(b, p, op)
}

// refuse counts a refused operation and appends its reply, if the operation has one. HoldQueue is not counted, because
// no client asks for it.
func (g *Guard) refuse(op core.Op, into []core.Reply) []core.Reply {
	if _, isHold := op.(*core.HoldQueue); !isHold {
		g.CountRefusal()
	}
	if tag := op.TagOf(); tag != 0 {
		into = append(into, core.Reply{Kind: core.Failed, Tag: tag, Err: core.ErrForbidden})
	}
	return into
}

// follow remembers the registrations of a client that may do anything, because a reload may take its rights away.
func (g *Guard) follow(id core.ClientID, ops []core.Op) {
	for _, op := range ops {
		switch op := op.(type) {
		case *core.Register:
			if c := g.client(id); c != nil {
				c.registered(op.Queue)
			}
		case *core.Unregister:
			if c := g.client(id); c != nil {
				c.unregistered(op)
			}
		}
	}
}

// dropLostQueues removes the registrations for queues that the principal may no longer consume, and appends the
// client's replies that arrive in the process.
func (g *Guard) dropLostQueues(id core.ClientID, c *client, p *Principal, into []core.Reply) []core.Reply {
	for queue := range c.queues {
		if !p.May(Consume, queue) {
			delete(c.queues, queue)
			into = g.Broker.Do(id, []core.Op{&core.Unregister{Queue: queue}}, into)
		}
	}
	return into
}

// withhold releases assigned jobs whose queue the principal may no longer consume, because a reload changed its rights
// while the lease waited. It checks the replies from index from on.
func (g *Guard) withhold(id core.ClientID, c *client, p *Principal, replies []core.Reply, from int) []core.Reply {
	if c.leaseBy == c.table {
		return replies
	}
	for i := from; i < len(replies); i++ {
		r := &replies[i]
		if r.Kind != core.Assigned || r.Job == nil || p.May(Consume, r.Job.Queue) || p.MayAll(Operate) {
			continue
		}
		g.CountRefusal()
		back := &core.Release{Tag: guardTag, Ref: core.Ref{Seq: r.Seq}, Epoch: r.Lease.Epoch}
		*r = core.Reply{Kind: core.Failed, Tag: r.Tag, N: r.N, Err: core.ErrForbidden}
		replies = g.Broker.Do(id, []core.Op{back}, replies)
		replies = slices.DeleteFunc(replies, func(r core.Reply) bool { return r.Tag == guardTag })
	}
	return replies
}
