package faktory

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"broker/core"
)

// silentFor is the maximum time between two heartbeats of a worker.
const silentFor = time.Minute

// workerState is the state of a worker process. It never goes back to an earlier one.
type workerState int32

// A running worker fetches jobs. A quiet one finishes its jobs. A terminating one should exit.
const (
	running workerState = iota
	quiet
	terminate
)

func (s workerState) String() string {
	switch s {
	case running:
		return "running"
	case quiet:
		return "quiet"
	case terminate:
		return "terminate"
	}
	return "unknown"
}

// parseWorkerState reads current_state of BEAT. Unknown words mean running, which changes nothing.
func parseWorkerState(word string) workerState {
	switch word {
	case "quiet":
		return quiet
	case "terminate":
		return terminate
	}
	return running
}

// worker is a process with a worker id and one or more connections.
type worker struct {
	hello     hello
	startedAt core.Instant
	state     atomic.Int32 // workerState; read by every FETCH of its connections

	// Guarded by registry.mu.
	owner  owner // of its connections; operators may use its id too
	conns  map[workerConn]struct{}
	beatAt core.Instant
	rssKB  int64
}

// workerConn is a connection of a worker.
type workerConn interface {
	raised(*worker) // its state has changed
	abort()
	address() string // empty: unknown
}

func (s *session) raised(*worker) { s.Conn.Wake() }
func (s *session) abort()         { s.Conn.Abort() }

// raise moves the worker forward to state, never back, and tells its connections. registry.mu must be held.
func (w *worker) raise(state workerState) {
	if w.state.Load() >= int32(state) {
		return
	}
	w.state.Store(int32(state))
	for m := range w.conns {
		m.raised(w)
	}
}

// registry holds the workers by id.
type registry struct {
	mu     sync.Mutex // guards the fields below; never held while the broker is called
	byID   map[string]*worker
	reaped int64
}

// mayBeUsedBy reports whether a principal may act for the worker. A worker process has several connections and may lose
// any of them, so all connections of its owner may use its id. Operators may use the id of any worker. registry.mu must
// be held.
func (w *worker) mayBeUsedBy(p owner) bool { return p.is(w.owner) || p.Operator }

// join adds s, a connection of p, to the connections of the worker that h names. It returns nil if that worker belongs
// to another principal.
func (r *registry) join(s workerConn, h hello, p owner, now core.Instant) *worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.byID[h.WID]
	if w == nil {
		w = &worker{hello: h, startedAt: now, owner: p, beatAt: now, conns: make(map[workerConn]struct{})}
		r.byID[h.WID] = w
	}
	if !w.mayBeUsedBy(p) {
		return nil
	}
	w.conns[s] = struct{}{}
	return w
}

// history is what is known of a worker beside its HELLO. The next leader learns it from the nodes of its connections.
type history struct {
	StartedAt, BeatAt core.Instant
	RSSKB             int64
	State             workerState
}

// history returns what this node knows of a worker.
func (r *registry) history(w *worker) history {
	r.mu.Lock()
	defer r.mu.Unlock()
	return history{w.startedAt, w.beatAt, w.rssKB, workerState(w.state.Load())}
}

// learn takes in what a node knows of a worker that it had at an earlier leader.
func (r *registry) learn(w *worker, of history) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.startedAt = min(w.startedAt, of.StartedAt)
	if len(w.conns) == 1 || of.BeatAt > w.beatAt {
		w.beatAt, w.rssKB = of.BeatAt, of.RSSKB
	}
	w.raise(of.State)
}

// note records a heartbeat that the leader has answered.
func (r *registry) note(b heartbeat, state workerState, now core.Instant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.byID[b.WID]; w != nil {
		w.beatAt, w.rssKB = now, b.RSSKB
		w.raise(state)
	}
}

// leave removes a closed connection from its worker, and the worker with its last connection.
func (r *registry) leave(s workerConn, w *worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(w.conns, s)
	if len(w.conns) == 0 && r.byID[w.hello.WID] == w {
		delete(r.byID, w.hello.WID)
	}
}

// heartbeat is the argument of BEAT.
type heartbeat struct {
	CurrentState string `json:"current_state"`
	WID          string `json:"wid"`
	RSSKB        int64  `json:"rss_kb"`
}

// beat records a heartbeat that a connection of p has sent, and returns the worker's state. own is the worker of the
// connection; nil: none. The error is core.ErrNotFound or core.ErrForbidden.
func (r *registry) beat(own *worker, b heartbeat, p owner, now core.Instant) (workerState, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.byID[b.WID]
	switch {
	case w == nil:
		return running, core.ErrNotFound
	case w == own:
		if !w.mayBeUsedBy(p) { // the settings have been reloaded
			w.owner = p
		}
	case !w.mayBeUsedBy(p):
		return running, core.ErrForbidden
	}
	w.beatAt, w.rssKB = now, b.RSSKB
	w.raise(parseWorkerState(b.CurrentState))
	return workerState(w.state.Load()), nil
}

// reap closes the connections of workers without heartbeats, whose jobs stay reserved.
func (r *registry) reap(now core.Instant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for wid, w := range r.byID {
		if now.Sub(w.beatAt) < silentFor {
			continue
		}
		for m := range w.conns {
			m.abort()
		}
		delete(r.byID, wid)
		r.reaped++
	}
}

// raise is worker.raise by id.
func (r *registry) raise(wid string, state workerState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.byID[wid]; w != nil {
		w.raise(state)
	}
}

// abort ends the connection of this node with a number.
func (r *registry) abort(number uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.byID {
		for m := range w.conns {
			if s := m.(*session); s.number == number {
				s.abort()
			}
		}
	}
}

// counts returns the numbers for INFO.
func (r *registry) counts() (size, reaped int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int64(len(r.byID)), r.reaped
}

// WorkerInfo is a row of the list of workers.
type WorkerInfo struct {
	WID, Hostname, Username string
	PID                     int64
	Labels                  []string
	ProtocolVersion         int64
	State                   string // running, quiet or terminate
	StartedAt, BeatAt       core.Instant
	RSSKB                   int64
	Connections             int
	RemoteAddr              string // address of one of its connections
}

// Workers lists the connected workers, ordered by id. Any goroutine may call it.
func (f *Frontend) Workers() []WorkerInfo {
	r := &f.workers
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]WorkerInfo, 0, len(r.byID))
	for wid, w := range r.byID {
		row := WorkerInfo{
			WID: wid, Hostname: w.hello.Hostname, Username: w.hello.Username, PID: w.hello.PID, Labels: w.hello.Labels,
			ProtocolVersion: w.hello.V, State: workerState(w.state.Load()).String(), StartedAt: w.startedAt,
			BeatAt: w.beatAt,
			RSSKB:  w.rssKB, Connections: len(w.conns),
		}
		for s := range w.conns {
			if addr := s.address(); addr != "" && (row.RemoteAddr == "" || addr < row.RemoteAddr) {
				row.RemoteAddr = addr
			}
		}
		out = append(out, row)
	}
	slices.SortFunc(out, func(a, b WorkerInfo) int { return strings.Compare(a.WID, b.WID) })
	return out
}

// SetWorkerState asks a worker to go quiet or to terminate. The answer to its next heartbeat says so; from now on it
// gets no jobs. The error is core.ErrNotFound for an unknown worker and core.ErrInvalid for any other state. Any
// goroutine may call it.
func (f *Frontend) SetWorkerState(wid, state string) error {
	to := parseWorkerState(state)
	if to == running {
		return fmt.Errorf("set state of worker %q to %q: %w", wid, state, core.ErrInvalid)
	}
	r := &f.workers
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.byID[wid]
	if w == nil {
		return fmt.Errorf("set state of worker %q: %w", wid, core.ErrNotFound)
	}
	w.raise(to)
	return nil
}
