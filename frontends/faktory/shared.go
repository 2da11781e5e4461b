package faktory

import (
	"encoding/json"
	"errors"
	"sync"

	"broker/access"
	"broker/core"
	"broker/frontends"
)

// The workers, the counts of connections and commands, and the prefix of batch ids belong to clients of all nodes. The
// front-end of the leader has them; that of a node that follows asks it, with a question. It keeps its own connections
// and workers, whose states the leader tells it, and registers them with the next leader.

// Questions.
const (
	askEnter  = "enter"  // a connection whose HELLO was accepted
	askLeave  = "leave"  // its end
	askBeat   = "beat"   // BEAT
	askCounts = "counts" // for INFO
	askPrefix = "prefix" // after the first batch of the store, while no prefix is known
)

type question struct {
	Do       string
	Conn     uint64    `json:",omitempty"` // number of the connection at its node
	Address  string    `json:",omitempty"`
	Hello    hello     `json:",omitzero"` // without the password
	Owner    owner     `json:",omitzero"`
	History  history   `json:",omitzero"` // of the worker, if an earlier leader knew the connection
	Beat     heartbeat `json:",omitzero"`
	Batch    uint64    `json:",omitempty"`
	Commands uint64    `json:",omitempty"` // executed since the node said so last
}

type answer struct {
	Refused     string      `json:",omitempty"`
	State       workerState `json:",omitempty"`
	Connections int64       `json:",omitempty"` // of all nodes
	Counts      counts      `json:",omitzero"`
}

// Values of answer.Refused.
const (
	refusedUnknown = "unknown"
	refusedOwner   = "owner"
)

// notice is what the leader tells a node: that a worker has this state at least, or that a connection must end.
type notice struct {
	WID   string      `json:",omitempty"`
	State workerState `json:",omitempty"`
	Abort uint64      `json:",omitempty"`
}

// counts are numbers in the answer to INFO.
type counts struct {
	Workers, Reaped, Connections, Commands, MemoryMB int64
	StartedAt                                        core.Instant
}

// remotes are the connections of other nodes.
type remotes struct {
	mu     sync.Mutex // guards byNode; taken before that of the registry
	byNode map[frontends.Node]map[uint64]*remote
}

// remote is a connection of another node.
type remote struct {
	node   frontends.Node
	number uint64
	from   string
	worker *worker // nil: a producer
}

func (r *remote) raised(w *worker) {
	r.node.Tell(frontends.ToJSON(notice{WID: w.hello.WID, State: workerState(w.state.Load())}))
}

func (r *remote) abort()          { r.node.Tell(frontends.ToJSON(notice{Abort: r.number})) }
func (r *remote) address() string { return r.from }

// Answer implements frontends.Shared.
func (f *Frontend) Answer(from frontends.Node, asked []byte, answers func([]byte)) {
	var q question
	var a answer
	if json.Unmarshal(asked, &q) == nil {
		a = f.answer(from, &q)
	}
	answers(frontends.ToJSON(a))
}

func (f *Frontend) answer(from frontends.Node, q *question) (a answer) {
	now := f.broker.Now()
	switch q.Do {
	case askEnter:
		return f.enterRemote(&remote{node: from, number: q.Conn, from: q.Address}, q, now)
	case askLeave:
		f.leaveRemote(from, q.Conn)
	case askBeat:
		f.remotes.mu.Lock()
		var own *worker
		if r := f.remotes.byNode[from][q.Conn]; r != nil {
			own = r.worker
		}
		f.remotes.mu.Unlock()
		state, err := f.workers.beat(own, q.Beat, q.Owner, now)
		a.State = state
		switch {
		case errors.Is(err, core.ErrNotFound):
			a.Refused = refusedUnknown
		case errors.Is(err, core.ErrForbidden):
			a.Refused = refusedOwner
		}
	case askCounts:
		f.commands.Add(q.Commands)
		a.Counts = f.counts()
	case askPrefix:
		f.bids.begin(f.broker, q.Batch)
	}
	return a
}

// enterRemote counts a connection of another node.
func (f *Frontend) enterRemote(r *remote, q *question, now core.Instant) (a answer) {
	f.remotes.mu.Lock()
	defer f.remotes.mu.Unlock()
	if known := f.remotes.byNode[r.node][r.number]; known != nil { // it was asked again
		a.Connections = f.connections.Load()
		if known.worker != nil {
			a.State = workerState(known.worker.state.Load())
		}
		return a
	}
	if q.Hello.WID != "" {
		if r.worker = f.workers.join(r, q.Hello, q.Owner, now); r.worker == nil {
			return answer{Refused: refusedOwner}
		}
		if q.History != (history{}) {
			f.workers.learn(r.worker, q.History)
		}
		a.State = workerState(r.worker.state.Load())
	}
	if f.remotes.byNode == nil {
		f.remotes.byNode = make(map[frontends.Node]map[uint64]*remote)
	}
	if f.remotes.byNode[r.node] == nil {
		f.remotes.byNode[r.node] = make(map[uint64]*remote)
	}
	f.remotes.byNode[r.node][r.number] = r
	a.Connections = f.connections.Add(1)
	return a
}

func (f *Frontend) leaveRemote(from frontends.Node, number uint64) {
	f.remotes.mu.Lock()
	defer f.remotes.mu.Unlock()
	r := f.remotes.byNode[from][number]
	if r == nil {
		return
	}
	delete(f.remotes.byNode[from], number)
	f.endRemote(r)
}

// endRemote ends what enterRemote began.
func (f *Frontend) endRemote(r *remote) {
	f.connections.Add(-1)
	if r.worker != nil {
		f.workers.leave(r, r.worker)
	}
}

// Left implements frontends.Shared.
func (f *Frontend) Left(node frontends.Node) {
	f.remotes.mu.Lock()
	all := f.remotes.byNode[node]
	delete(f.remotes.byNode, node)
	f.remotes.mu.Unlock()
	for _, r := range all {
		f.endRemote(r)
	}
}

// Heard implements frontends.Shared.
func (f *Frontend) Heard(say []byte) {
	var n notice
	switch {
	case json.Unmarshal(say, &n) != nil:
	case n.Abort != 0:
		f.workers.abort(n.Abort)
	default:
		f.workers.raise(n.WID, n.State)
	}
}

// entered are the connections of a node that follows whose HELLO was accepted: the leader knows them, or is about to.
type entered struct {
	mu  sync.Mutex // guards all; taken before that of the registry
	all map[uint64]*entry
}

// entry is such a connection.
type entry struct {
	session *session
	worker  *worker // nil: a producer
	asked   question
}

func (e *entered) add(c *entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == nil {
		e.all = make(map[uint64]*entry)
	}
	e.all[c.asked.Conn] = c
}

func (e *entered) remove(number uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.all, number)
}

// Register implements frontends.Shared.
func (f *Frontend) Register(ask func(question []byte, handle func(answer []byte))) {
	f.bids.forget()
	f.entered.mu.Lock()
	defer f.entered.mu.Unlock()
	for _, c := range f.entered.all {
		q := c.asked
		if c.worker != nil {
			q.History = f.workers.history(c.worker)
		}
		ask(frontends.ToJSON(&q), func(say []byte) {
			var a answer
			switch {
			case json.Unmarshal(say, &a) != nil, a.Refused != "": // its worker is another client's now
				c.session.abort()
			case c.worker != nil:
				f.workers.raise(q.Hello.WID, a.State)
			}
		})
	}
}

// ask asks the leader. Without one the connections of all clients end, so that the answer does not matter.
func (f *Frontend) ask(q *question) answer {
	a, err := frontends.AskLeader[answer](f.opts.Leader.Ask, q)
	if err != nil {
		a.Refused = refusedUnknown
	}
	return a
}

// enter counts a connection whose HELLO was accepted, and finds its worker. ok is false if that is another client's.
func (s *session) enter(h hello) (connections int64, ok bool) {
	f, by := s.front, ownerOf(s.Principal())
	if f.opts.Leader == nil {
		if h.WID != "" {
			if s.worker = f.workers.join(s, h, by, f.broker.Now()); s.worker == nil {
				return 0, false
			}
		}
		return f.connections.Add(1), true
	}
	if h.WID != "" { // before the leader tells its state
		by.Operator = true // the leader decides
		s.worker = f.workers.join(s, h, by, f.broker.Now())
	}
	h.PwdHash = ""
	c := &entry{session: s, worker: s.worker, asked: question{
		Do: askEnter, Conn: s.number, Address: s.address(), Hello: h, Owner: ownerOf(s.Principal()),
	}}
	f.entered.add(c)
	a := f.ask(&c.asked)
	if a.Refused != "" {
		f.tellLeave(s.number) // another leader may have taken it in the meantime
	}
	switch {
	case s.worker == nil:
	case a.Refused != "":
		f.workers.leave(s, s.worker)
		s.worker = nil
	default:
		f.workers.raise(h.WID, a.State)
	}
	return a.Connections, a.Refused == ""
}

// leave ends what enter began.
func (s *session) leave() {
	f := s.front
	if s.worker != nil {
		f.workers.leave(s, s.worker)
	}
	if f.opts.Leader != nil {
		f.tellLeave(s.number)
		return
	}
	f.connections.Add(-1)
}

// tellLeave makes the leader forget a connection.
func (f *Frontend) tellLeave(number uint64) {
	f.entered.remove(number)
	f.ask(&question{Do: askLeave, Conn: number})
}

// recordBeat records a heartbeat. Its errors are those of registry.beat.
func (s *session) recordBeat(b heartbeat) (workerState, error) {
	f, by := s.front, ownerOf(s.Principal())
	if f.opts.Leader == nil {
		return f.workers.beat(s.worker, b, by, f.broker.Now())
	}
	a := f.ask(&question{Do: askBeat, Conn: s.number, Beat: b, Owner: by})
	switch a.Refused {
	case refusedUnknown:
		return running, core.ErrNotFound
	case refusedOwner:
		return running, core.ErrForbidden
	}
	f.workers.note(b, a.State, f.broker.Now())
	return a.State, nil
}

// counts returns the numbers for INFO, of all nodes.
func (f *Frontend) counts() counts {
	if f.opts.Leader != nil {
		return f.ask(&question{Do: askCounts, Commands: f.commands.Swap(0)}).Counts
	}
	c := counts{
		Connections: f.connections.Load(), Commands: int64(f.commands.Load()), MemoryMB: memoryMB(),
		StartedAt: f.startedAt,
	}
	c.Workers, c.Reaped = f.workers.counts()
	return c
}

// owner is the principal of a worker's connections.
type owner struct {
	Name     string `json:",omitempty"`
	Nobody   bool   `json:",omitempty"` // no principal, among some
	Operator bool   `json:",omitempty"` // may use the id of any worker
}

func ownerOf(p *access.Principal) owner {
	return owner{Name: p.Name(), Nobody: p == access.Nobody, Operator: p.MayAll(access.Operate)}
}

// is reports whether two owners are the same principal. One keeps its name when its credentials change.
func (o owner) is(other owner) bool { return o.Name == other.Name && o.Nobody == other.Nobody }
