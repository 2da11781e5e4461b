package console

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"sync"
	"time"

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
	began  time.Time
	used   time.Time
}

// sessions are the logins, by the secret in the browser's cookie. A restart ends all of them.
type sessions struct {
	now func() time.Time

	mu       sync.Mutex // guards bySecret
	bySecret map[string]*session
}

// start begins a session and returns its secret.
func (s *sessions) start(caller service.Caller) string {
	secret, now := rand.Text(), s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.bySecret) >= maxSessions || s.bySecret == nil {
		s.dropOld(now)
	}
	s.bySecret[secret] = &session{caller: caller, began: now, used: now}
	return secret
}

// dropOld makes room: it removes expired sessions, and if that is not enough, all sessions.
func (s *sessions) dropOld(now time.Time) {
	kept := make(map[string]*session)
	for secret, one := range s.bySecret {
		if one.alive(now) {
			kept[secret] = one
		}
	}
	if len(kept) >= maxSessions {
		clear(kept)
	}
	s.bySecret = kept
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
	delete(s.bySecret, cookie.Value)
}

// loginData is the data of the login page.
type loginData struct{ To, Problem string }

func (c *Console) loginPage(w http.ResponseWriter, r *http.Request) {
	c.render(w, r, service.Caller{}, &view{page: "login", nav: "-", title: "Log in", data: loginData{To: r.URL.Query().Get("to")}})
}

// login checks a password or token and starts a session.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	to := r.PostFormValue("to")
	caller, status := c.options.Check(r, r.PostFormValue("secret"))
	if status != http.StatusOK {
		problem := "Wrong password or token."
		if status == http.StatusTooManyRequests {
			problem = "Too many failed logins from this address. Try again in a minute."
		}
		c.render(w, r, service.Caller{}, &view{page: "login", nav: "-", title: "Log in", status: status, data: loginData{To: to, Problem: problem}})
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
