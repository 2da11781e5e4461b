package faktory

import (
	"crypto/x509"
	"sync"
	"sync/atomic"
	"time"

	"broker/access"
	"broker/core"
	"broker/frontends"
)

// login checks the password hash of one HELLO. It costs thousands of rounds of SHA-256 for each configured password. So
// it runs on a goroutine of loginQueue, not on the event loop.
type login struct {
	conn        frontends.Conn
	challenge   challenge
	hello       hello
	certificate *x509.Certificate

	dropped atomic.Bool // the connection is closed
	done    atomic.Bool // the fields below are set

	principal *access.Principal // the principal whose password the client has shown; nil: none
	ok        bool
	missing   bool // the client sent no password
}

// run checks the password.
func (l *login) run(f *Frontend) {
	l.principal, l.ok = l.byPassword(f)
	if !l.ok {
		l.missing = l.challenge.accepts(l.hello, "")
		l.ok = l.missing && f.admitsWithoutPassword(l.certificate)
	}
	l.done.Store(true)
	l.conn.Wake()
}

// byPassword finds the principal whose password the client has proved to know. The password of the front-end itself
// gives all rights.
func (l *login) byPassword(f *Frontend) (*access.Principal, bool) {
	if own := f.opts.Password; own != "" && l.challenge.accepts(l.hello, own) {
		return access.PasswordOf(core.Faktory), true
	}
	p := f.broker.Control().ByPassword(func(password string) bool { return l.challenge.accepts(l.hello, password) })
	return p, p != nil
}

// admitsWithoutPassword reports whether a client needs no password, because none is required or its certificate
// identifies it.
func (f *Frontend) admitsWithoutPassword(c *x509.Certificate) bool {
	return f.opts.Password == "" || f.broker.Control().ByCertificate(c) != nil
}

// loginQueues check logins. Logins from addresses with too many failures have their own queue, so that they cannot
// delay others.
type loginQueues struct {
	prompt, throttled loginQueue
}

// loginQueue runs logins one after the other. Its goroutine ends when no logins are left.
type loginQueue struct {
	run   func(*login)
	limit int // maximum of waiting logins; zero: no limit, because each connection has at most one

	mu      sync.Mutex // guards the fields below
	waiting []*login
	running bool
}

const (
	// maxThrottled limits the waiting logins from addresses with too many failures.
	maxThrottled = 1000

	// throttleFactor is the pause after such a login, as a multiple of the time that its check took. The pause prevents
	// password guessing from keeping a processor busy.
	throttleFactor = 3
)

// add queues a login, unless there are too many.
func (q *loginQueue) add(l *login) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.limit > 0 && len(q.waiting) >= q.limit {
		return false
	}
	q.waiting = append(q.waiting, l)
	if !q.running {
		q.running = true
		go q.work() // ends after the last login
	}
	return true
}

// work runs logins until the queue is empty.
func (q *loginQueue) work() {
	for l := q.next(); l != nil; l = q.next() {
		if !l.dropped.Load() {
			q.run(l)
		}
	}
}

func (q *loginQueue) next() *login {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.running, q.waiting = false, nil
		return nil
	}
	l := q.waiting[0]
	q.waiting[0] = nil
	q.waiting = q.waiting[1:]
	return l
}

// startLogin queues the check of the password hash of a HELLO. Deliver gets the result.
func (s *session) startLogin(h hello) {
	l := &login{conn: s.Conn, challenge: s.challenge, hello: h, certificate: frontends.PeerCertificate(s.Conn)}
	queue := &s.front.logins.prompt
	if s.front.broker.Control().Logins().Wait(s.address(), "", s.front.broker.Now()) > 0 {
		queue = &s.front.logins.throttled
	}
	if !queue.add(l) {
		s.refuse(tooManyLogins)
		s.HangUp()
		return
	}
	s.login = l
}

// runPrompt runs a login without a pause.
func (f *Frontend) runPrompt(l *login) { l.run(f) }

// runThrottled runs a login from an address with too many failures, then pauses.
func (f *Frontend) runThrottled(l *login) {
	start := f.broker.Now()
	l.run(f)
	if took := f.broker.Now().Sub(start); took > 0 {
		<-time.After(throttleFactor * min(took, time.Second))
	}
}

const (
	wrongPassword = "Invalid password"
	tooManyLogins = "too many failed logins"
)

// finishLogin answers HELLO once its password has been checked.
func (s *session) finishLogin() {
	l := s.login
	s.login = nil
	if l.ok {
		s.admit(l.hello, l.principal)
		return
	}
	wait := time.Duration(0)
	if !l.missing {
		wait = s.front.broker.Control().Logins().Failed(s.address(), "", s.front.broker.Now())
	}
	s.refuseLogin(wait)
}

// refuseLogin ends a connection that has sent no password or a wrong one, or that must wait before its next attempt.
func (s *session) refuseLogin(wait time.Duration) {
	if wait > 0 {
		s.refuse(tooManyLogins)
	} else {
		s.refuse(wrongPassword)
	}
	s.HangUp()
}

// address is the client's address for the login limiter.
func (s *session) address() string {
	if a := s.Conn.RemoteAddr(); a != nil {
		return a.String()
	}
	return ""
}
