package faktory

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"broker/core"
)

// silentFor is how long a worker may be without a heartbeat.
const silentFor = time.Minute

// WorkerState is how far a worker is on its way out; it only ever goes forward.
type WorkerState int32

// A running worker fetches; a quiet one finishes what it has; one told to terminate should exit.
const (
	Running WorkerState = iota
	Quiet
	Terminate
)

func (s WorkerState) String() string {
	switch s {
	case Running:
		return "running"
	case Quiet:
		return "quiet"
	case Terminate:
		return "terminate"
	}
	return "unknown"
}

// parseWorkerState knows the words of BEAT; any other means running, which changes nothing.
func parseWorkerState(word string) WorkerState {
	switch word {
	case "quiet":
		return Quiet
	case "terminate":
		return Terminate
	}
	return Running
}

// worker is a process with an id of its own and some connections.
type worker struct {
	hello     hello
	startedAt core.Instant
	state     atomic.Int32 // WorkerState; read by every FETCH of its connections

	// Guarded by registry.mu.
	conns  map[*session]struct{}
	beatAt core.Instant
	rssKB  int64
}

// raise moves the worker forward to state, never back. Its connections that wait for a job are told. Guarded by
// registry.mu.
func (w *worker) raise(state WorkerState) {
	if w.state.Load() >= int32(state) {
		return
	}
	w.state.Store(int32(state))
	for s := range w.conns {
		s.conn.Wake()
	}
}

// registry knows the workers by their ids, and the connections that have not shaken hands.
type registry struct {
	mu     sync.Mutex // guards what follows; never held while the broker is called
	byID   map[string]*worker
	fresh  []*session // oldest first; those that have shaken hands are dropped when they come to the front
	reaped int64
}

// expectHello starts the clock of a connection's handshake.
func (r *registry) expectHello(s *session, now core.Instant) {
	s.helloBy = now.Add(handshakeFor)
	r.mu.Lock()
	r.fresh = append(r.fresh, s)
	r.mu.Unlock()
}

// join makes s a connection of the worker that h names.
func (r *registry) join(s *session, h hello, now core.Instant) *worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.byID[h.WID]
	if w == nil {
		w = &worker{hello: h, startedAt: now, beatAt: now, conns: make(map[*session]struct{})}
		r.byID[h.WID] = w
	}
	w.conns[s] = struct{}{}
	return w
}

// leave takes a closed connection from its worker; the last one takes the worker along.
func (r *registry) leave(s *session, w *worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(w.conns, s)
	if len(w.conns) == 0 && r.byID[w.hello.WID] == w {
		delete(r.byID, w.hello.WID)
	}
}

// beat notes a sign of life and says what the worker should be told.
func (r *registry) beat(wid, state string, rssKB int64, now core.Instant) (WorkerState, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.byID[wid]
	if w == nil {
		return Running, false
	}
	w.beatAt, w.rssKB = now, rssKB
	w.raise(parseWorkerState(state))
	return WorkerState(w.state.Load()), true
}

// reap closes connections that did not shake hands in time, and those of workers that have been silent for too long.
// Their jobs stay reserved.
func (r *registry) reap(now core.Instant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for ; n < len(r.fresh); n++ {
		s := r.fresh[n]
		if !s.greeted.Load() {
			if s.helloBy > now {
				break
			}
			s.conn.Abort()
		}
		r.fresh[n] = nil
	}
	if r.fresh = r.fresh[n:]; len(r.fresh) == 0 {
		r.fresh = nil // give the array back after a burst of connections
	}
	for wid, w := range r.byID {
		if now.Sub(w.beatAt) < silentFor {
			continue
		}
		for s := range w.conns {
			s.conn.Abort()
		}
		delete(r.byID, wid)
		r.reaped++
	}
}

// counts are the numbers that INFO tells.
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
	State                   WorkerState
	StartedAt, BeatAt       core.Instant
	RSSKB                   int64
	Connections             int
	RemoteAddr              string // of one of its connections
}

// Workers lists the workers that are connected, by their ids. Any goroutine.
func (f *Frontend) Workers() []WorkerInfo {
	r := &f.workers
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]WorkerInfo, 0, len(r.byID))
	for wid, w := range r.byID {
		row := WorkerInfo{
			WID: wid, Hostname: w.hello.Hostname, Username: w.hello.Username, PID: w.hello.PID, Labels: w.hello.Labels,
			ProtocolVersion: w.hello.V, State: WorkerState(w.state.Load()), StartedAt: w.startedAt, BeatAt: w.beatAt,
			RSSKB: w.rssKB, Connections: len(w.conns),
		}
		for s := range w.conns {
			if addr := s.conn.RemoteAddr(); addr != nil && (row.RemoteAddr == "" || addr.String() < row.RemoteAddr) {
				row.RemoteAddr = addr.String()
			}
		}
		out = append(out, row)
	}
	slices.SortFunc(out, func(a, b WorkerInfo) int { return cmp.Compare(a.WID, b.WID) })
	return out
}

// SetWorkerState tells a worker to go quiet or to terminate: it hears of it with its next heartbeat and gets no job from
// now on. It reports core.ErrNotFound for an unknown worker, and core.ErrInvalid for another state. Any goroutine.
func (f *Frontend) SetWorkerState(wid, state string) error {
	to := parseWorkerState(state)
	if to == Running {
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
