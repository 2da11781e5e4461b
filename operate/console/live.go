package console

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"broker/frontends/access"
	"broker/operate/service"
)

// How often tabs are notified of changes at most, how often a stream shows that it is alive, and how long a stream lasts
// before the browser makes a new one.
const (
	liveEvery     = 2 * time.Second
	liveHeartbeat = 15 * time.Second
	liveFor       = 30 * time.Minute
)

// maxTabs bounds the streams. Further tabs poll.
const maxTabs = 500

// live tells tabs that something has changed. One goroutine looks at the broker's counters for all of them, while there is
// any tab.
type live struct {
	service func() *service.Service

	now  func() time.Time
	turn atomic.Uint64 // counts the changes that were seen

	mu       sync.Mutex // guards the rest
	tabs     map[chan struct{}]struct{}
	last     fingerprint
	watching bool
}

func newLive(s func() *service.Service, now func() time.Time) *live {
	l := &live{service: s, now: now, tabs: make(map[chan struct{}]struct{})}
	l.turn.Store(uint64(now().UnixNano())) //nolint:gosec // after 1970; a tab from before a restart has another turn
	return l
}

// join adds a tab whose page is of a turn; ok is false if there are too many. A page of another turn may lack a change: its
// tab is notified at once.
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

// watch looks for changes until there is no tab.
func (l *live) watch() {
	ticks := time.NewTicker(liveEvery)
	defer ticks.Stop()
	for range ticks.C {
		if !l.look() {
			return
		}
	}
}

// look tells the tabs if something has changed since the last look; false: there are none any more.
func (l *live) look() bool {
	now := l.fingerprint()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watching = len(l.tabs) > 0; !l.watching {
		return false
	}
	if now == l.last {
		return true
	}
	l.last = now
	l.turn.Add(1) // before any tab fetches its page
	for tab := range l.tabs {
		select {
		case tab <- struct{}{}:
		default: // it has not read the last one yet
		}
	}
	return true
}

// fingerprint is what a look at the broker compares: as long as it stays, no page looks different.
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
		dead: sum.Jobs["dead"], queues: sum.Queues, draining: sum.Draining, diskFull: sum.DiskFull, reports: sum.Reports,
	}
	for _, n := range sum.Jobs {
		f.all += n
	}
	for protocol, n := range sum.Clients {
		if protocol != "http" { // pages are HTTP clients themselves
			f.clients += n
		}
	}
	return f
}

// serve is GET /live.
func (l *live) serve(w http.ResponseWriter, r *http.Request) {
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
		_ = control.SetWriteDeadline(l.now().Add(2 * liveHeartbeat)) // where it is not supported, the server's own one holds
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
		case <-changed:
			text = fmt.Sprintf("event: changed\ndata: %d\n\n", l.turn.Load())
		case <-heartbeat.C:
			text = ": alive\n\n"
		}
	}
}
