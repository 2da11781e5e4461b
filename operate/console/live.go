package console

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"broker/access"
	"broker/operate/service"
)

// How often tabs are notified of changes at most, how often a stream shows that it is alive, and how long a stream
// lasts before the browser makes a new one.
const (
	liveEvery     = 2 * time.Second
	liveHeartbeat = 15 * time.Second
	liveFor       = 30 * time.Minute
)

// maxTabs limits the number of streams. Other tabs poll.
const maxTabs = 500

// live notifies tabs of changes. One goroutine compares the broker's counters for all tabs, as long as there are tabs.
type live struct {
	service func() *service.Service

	now  func() time.Time
	turn atomic.Uint64 // number of detected changes

	mu       sync.Mutex // guards the rest
	tabs     map[chan struct{}]struct{}
	last     fingerprint
	watching bool
}

func newLive(s func() *service.Service, now func() time.Time) *live {
	l := &live{service: s, now: now, tabs: make(map[chan struct{}]struct{})}
	l.turn.Store(uint64(now().UnixNano())) // after 1970; a tab from before a restart has another turn
	return l
}

// join adds a tab. turn is the turn of its page: if it is not the current one, the page may lack a change, and the tab
// is notified at once. ok is false if there are too many tabs.
func (l *live) join(turn string) (changed chan struct{}, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.tabs) >= maxTabs {
		return nil, false
	}
	changed = make(chan struct{}, 1)
	if turn != strconv.FormatUint(l.turn.Load(), 10) {
		changed <- struct{}{}
	}
	l.tabs[changed] = struct{}{}
	if !l.watching {
		l.watching = true
		go l.watch() // ends with the last tab
	}
	return changed, true
}

func (l *live) leave(changed chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.tabs, changed)
}

// watch checks for changes as long as there are tabs.
func (l *live) watch() {
	ticks := time.NewTicker(liveEvery)
	defer ticks.Stop()
	for range ticks.C {
		if !l.look() {
			return
		}
	}
}

// look notifies the tabs if something has changed since the last call. It ends their streams if the broker does not
// serve: the tabs then show that. It returns false if there are no tabs.
func (l *live) look() bool {
	now := l.fingerprint()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.service() == nil {
		for tab := range l.tabs {
			close(tab)
		}
		clear(l.tabs)
	}
	if l.watching = len(l.tabs) > 0; !l.watching {
		return false
	}
	if now == l.last {
		return true
	}
	l.last = now
	l.turn.Add(1) // before a tab fetches its page
	for tab := range l.tabs {
		select {
		case tab <- struct{}{}:
		default: // the tab has not read the previous notification yet
		}
	}
	return true
}

// fingerprint has the counters that look compares. Tabs are notified only when one of them changes.
type fingerprint struct {
	totals                              service.Totals
	ready, leased, scheduled, dead, all int
	queues, clients                     int
	reports                             uint64
	draining, diskFull                  bool
}

func (l *live) fingerprint() fingerprint {
	s := l.service()
	if s == nil {
		return fingerprint{}
	}
	sum, err := s.Summary(context.Background(), service.Caller{Principal: access.Everyone})
	if err != nil {
		return fingerprint{} // the broker is closing
	}
	f := fingerprint{
		totals: sum.Totals, ready: sum.Jobs["ready"], leased: sum.Jobs["leased"], scheduled: sum.Jobs["scheduled"],
		dead: sum.Jobs["dead"], queues: sum.Queues, draining: sum.Draining, diskFull: sum.DiskFull,
		reports: sum.Reports,
	}
	for _, n := range sum.Jobs {
		f.all += n
	}
	for protocol, n := range sum.Clients {
		if protocol != "http" { // pages are HTTP clients too
			f.clients += n
		}
	}
	return f
}

// serve serves GET /live.
func (l *live) serve(w http.ResponseWriter, r *http.Request) {
	if l.service() == nil {
		http.Error(w, "the broker does not serve clients now", http.StatusServiceUnavailable)
		return
	}
	changed, ok := l.join(r.URL.Query().Get("turn"))
	if !ok {
		http.Error(w, "too many live pages; this one polls", http.StatusServiceUnavailable)
		return
	}
	defer l.leave(changed)
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	heartbeat := time.NewTicker(liveHeartbeat)
	defer heartbeat.Stop()
	end := time.NewTimer(liveFor)
	defer end.Stop()
	text := ": live\n\n"
	for {
		// if it is not supported, the server's own deadline applies
		_ = control.SetWriteDeadline(l.now().Add(2 * liveHeartbeat))
		if _, err := fmt.Fprint(w, text); err != nil {
			return
		}
		if err := control.Flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-end.C:
			return
		case _, open := <-changed:
			if !open {
				return
			}
			text = fmt.Sprintf("event: changed\ndata: %d\n\n", l.turn.Load())
		case <-heartbeat.C:
			text = ": alive\n\n"
		}
	}
}
