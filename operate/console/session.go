package console

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"sync"
	"time"

	"broker/access"
	"broker/operate/service"
)

// A session ends sessionIdle after its last use, and at the latest sessionLife after the login.
const (
	sessionIdle = 2 * time.Hour
	sessionLife = 24 * time.Hour
	maxSessions = 10_000
)

const sessionCookie = "broker_session"

// session is a login in a browser.
type session struct {
	caller service.Caller
	holder access.Holder
	began  time.Time
	used   time.Time
}

// sessions are the logins, by the secret in the browser's cookie. A restart ends all of them.
type sessions struct {
	now func() time.Time

	mu       sync.Mutex // guards the fields below
	pool     *access.Pool
	bySecret map[string]*session
}

// start begins a session and returns its secret. If the caller has its share of sessions, its session that was not used
// for longest ends.
func (s *sessions) start(caller service.Caller) string {
	secret, now, holder := rand.Text(), s.now(), caller.Holder()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bySecret == nil {
		s.bySecret, s.pool = make(map[string]*session), access.NewPool(maxSessions)
	}
	if s.pool.Take(holder, 1) != nil {
		s.makeRoom(holder, now)
	}
	s.bySecret[secret] = &session{caller: caller, holder: holder, began: now, used: now}
	return secret
}

// makeRoom takes a place for a holder: that of an expired session, else that of a session of the holder, else that of
// any holder. It ends the session that was not used for longest. The caller holds mu.
func (s *sessions) makeRoom(h access.Holder, now time.Time) {
	var own, any string
	for secret, one := range s.bySecret {
		switch {
		case !one.alive(now):
			s.drop(secret)
		case one.holder == h && (own == "" || one.used.Before(s.bySecret[own].used)):
			own = secret
		case any == "" || one.used.Before(s.bySecret[any].used):
			any = secret
		}
	}
	if s.pool.Take(h, 1) == nil {
		return
	}
	if own == "" { // nothing is free: the administrators have what the others may not take
		own = any
	}
	s.drop(own)
	s.pool.Restore(h, 1)
}

// drop ends a session. The caller holds mu.
func (s *sessions) drop(secret string) {
	if one := s.bySecret[secret]; one != nil {
		s.pool.Return(one.holder, 1)
		delete(s.bySecret, secret)
	}
}

func (s *session) alive(now time.Time) bool {
	return now.Sub(s.used) < sessionIdle && now.Sub(s.began) < sessionLife
}

// caller returns the caller of the session in a request's cookie.
func (s *sessions) caller(r *http.Request) (service.Caller, bool) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return service.Caller{}, false
	}
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.bySecret[cookie.Value]
	if one == nil || !one.alive(now) {
		return service.Caller{}, false
	}
	one.used = now
	caller := one.caller
	caller.Address = r.RemoteAddr
	return caller, true
}

// end deletes the session of a request.
func (s *sessions) end(r *http.Request) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(cookie.Value)
}

// loginData is the data of the login page.
type loginData struct{ To, Problem string }

func (c *Console) loginPage(w http.ResponseWriter, r *http.Request) {
	c.render(w, r, service.Caller{},
		&view{page: "login", nav: "-", title: "Log in", data: loginData{To: r.URL.Query().Get("to")}})
}

// login checks a password or token and starts a session.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	to := r.PostFormValue("to")
	caller, status := c.options.Port.CheckSecret(r, r.PostFormValue("secret"))
	if status != http.StatusOK {
		problem := "Wrong password or token."
		if status == http.StatusTooManyRequests {
			problem = "Too many failed logins from this address. Try again in a minute."
		}
		c.render(w, r, service.Caller{},
			&view{page: "login", nav: "-", title: "Log in", status: status, data: loginData{To: to, Problem: problem}})
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: sessionCookie, Value: c.sessions.start(caller), Path: "/", MaxAge: int(sessionLife / time.Second),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: r.TLS != nil,
	})
	if strings.Contains(to, "://") || strings.HasPrefix(to, "/") || strings.Contains(to, "\\") {
		to = "" // only pages of this console are allowed
	}
	http.Redirect(w, r, "./"+to, http.StatusSeeOther)
}

func (c *Console) logout(w http.ResponseWriter, r *http.Request) {
	c.sessions.end(r)
	http.SetCookie(w, &http.Cookie{Name: sessionCookie, Path: "/", MaxAge: -1, HttpOnly: true})
	http.Redirect(w, r, "login", http.StatusSeeOther)
}

type callerKey struct{}

func withCaller(ctx context.Context, c service.Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

func callerOf(ctx context.Context) service.Caller {
	c, _ := ctx.Value(callerKey{}).(service.Caller)
	return c
}
