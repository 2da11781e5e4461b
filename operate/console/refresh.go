package console

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"sync"
	"time"
)

// refreshes renders a page once for all tabs that show it to the same principal. They fetch it at the same moment, when
// the event stream announces a change.
type refreshes struct {
	now func() time.Time

	mu    sync.Mutex // guards the rest
	turn  uint64     // of the event stream; pages of earlier turns may lack a change
	pages map[string]*refreshed
}

// refreshed is a page that was rendered a moment ago, or is being rendered.
type refreshed struct {
	at     time.Time
	done   chan struct{} // closed once the fields below are set
	status int
	header http.Header
	body   bytes.Buffer
}

// refreshFor is how long a rendered page is reused; it is short, because pages show ages. maxRefreshed limits the
// number of pages.
const (
	refreshFor   = time.Second
	maxRefreshed = 64
)

// serve answers a request of a page that refreshes itself. The response has the nonce of another tab of the principal:
// its scripts do not run, and the page's own policy stays in force.
func (s *refreshes) serve(w http.ResponseWriter, r *http.Request, turn uint64, key string, render http.Handler) {
	page, first := s.page(turn, key)
	if first {
		page.render(r, render)
	}
	select {
	case <-page.done:
	case <-r.Context().Done():
		return
	}
	maps.Copy(w.Header(), page.header.Clone())
	w.WriteHeader(page.status)
	_, _ = w.Write(page.body.Bytes()) // the client may have disconnected
}

// page returns a page; if first is true, the caller must render it.
func (s *refreshes) page(turn uint64, key string) (p *refreshed, first bool) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if turn != s.turn || s.pages == nil || len(s.pages) >= maxRefreshed {
		s.turn, s.pages = turn, map[string]*refreshed{}
	}
	if p = s.pages[key]; p != nil && now.Sub(p.at) < refreshFor && !now.Before(p.at) {
		return p, false
	}
	p = &refreshed{at: now, done: make(chan struct{}), status: http.StatusInternalServerError, header: http.Header{}}
	s.pages[key] = p
	return p, true
}

// render renders the page. It continues for the other tabs if the first tab disconnects.
func (p *refreshed) render(r *http.Request, handler http.Handler) {
	defer close(p.done)
	p.status = http.StatusInternalServerError
	handler.ServeHTTP(p, r.WithContext(context.WithoutCancel(r.Context())))
}

// Header implements http.ResponseWriter.
func (p *refreshed) Header() http.Header { return p.header }

// WriteHeader implements http.ResponseWriter.
func (p *refreshed) WriteHeader(status int) { p.status = status }

// Write implements http.ResponseWriter.
func (p *refreshed) Write(b []byte) (int, error) { return p.body.Write(b) }

// shared makes tabs with the same page share one rendering.
func (c *Console) shared(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, inSession := c.sessions.caller(r)
		caller := callerOf(r.Context())
		if _, err := r.Cookie(flashCookie); err == nil || r.Header.Get("HX-Request") == "" || caller.Principal == nil {
			next.ServeHTTP(w, r)
			return
		}
		key := caller.Name() + "\x00" + r.Host + "\x00" + r.URL.RequestURI() + "\x00" + theme(r)
		if columns, err := r.Cookie(columnsCookie(r.URL.Path)); err == nil {
			key += "\x00" + columns.Value
		}
		if inSession {
			key += "\x00session"
		}
		c.refreshes.serve(w, r, c.live.turn.Load(), key, next)
	})
}
