package faktory

import (
	"crypto/x509"
	"sync"
	"sync/atomic"
	"time"

	"broker/core"
	"broker/frontends"
	"broker/frontends/access"
)

// login is the check of the password hash of one HELLO. It costs thousands of rounds of SHA-256 for each password that is
// configured, and so runs on a goroutine of loginQueue, not on the event loop.
type login struct {
	conn        frontends.Conn
	challenge   challenge
	hello       hello
	certificate *x509.Certificate

	dropped atomic.Bool // the connection is closed
	done    atomic.Bool // the rest is set

	principal *access.Principal // whose password the client knows; nil: it has shown none
	ok        bool
	missing   bool // the hash is that of no password
}

// run checks the password.
func (l *login) run(o *Options) {
	l.principal, l.ok = l.byPassword(o)
	if !l.ok {
		l.missing = l.challenge.accepts(l.hello, "")
		l.ok = l.missing && o.admitsWithoutPassword(l.certificate)
	}
	l.done.Store(true)
	l.conn.Wake()
}

// byPassword finds who the client is by the password that it proves to know: the front-end's own gives all rights.
func (l *login) byPassword(o *Options) (*access.Principal, bool) {
	if o.Password != "" && l.challenge.accepts(l.hello, o.Password) {
		return access.PasswordOf(core.Faktory), true
	}
	p := o.Access.ByPassword(func(password string) bool { return l.challenge.accepts(l.hello, password) })
	return p, p != nil
}

// admitsWithoutPassword reports whether a client may do without: none is required, or its certificate says who it is.
func (o *Options) admitsWithoutPassword(c *x509.Certificate) bool {
	return o.Password == "" || o.Access.ByCertificate(c) != nil
}

// loginQueues check logins: those of addresses with too many failures after all others, so that they cannot delay them.
type loginQueues struct {
	prompt, owing loginQueue
}

// loginQueue runs logins one after the other, on a goroutine that lives as long as there are any.
type loginQueue struct {
	run   func(*login)
	limit int // of waiting logins; zero: none, as each connection has one at most

	mu      sync.Mutex // guards what follows
	waiting []*login
	running bool
}

const (
	// maxOwing is how many logins of addresses with too many failures may wait.
	maxOwing = 1000

	// owingRest is how many times as long as a check of such a login the next one waits, so that guessing cannot keep a
	// processor busy.
	owingRest = 3
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
		go q.work() // ends with the last login; nothing waits for it
	}
	return true
}

// work runs the logins until there are none.
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

// startLogin has the password hash of a HELLO checked; Deliver learns the result.
func (s *session) startLogin(h hello) {
	l := &login{conn: s.conn, challenge: s.challenge, hello: h, certificate: frontends.PeerCertificate(s.conn)}
	queue := &s.f.logins.prompt
	if s.f.o.Access.Logins().Wait(s.address(), "", s.f.b.Now()) > 0 {
		queue = &s.f.logins.owing
	}
	if !queue.add(l) {
		s.refuse(tooManyLogins)
		s.hangUp()
		return
	}
	s.login = l
	s.greeted.Store(true) // the client has done its part in time
}

// runPrompt runs a login.
func (f *Frontend) runPrompt(l *login) { l.run(&f.o) }

// runOwing runs a login of an address with too many failures, and rests.
func (f *Frontend) runOwing(l *login) {
	start := f.b.Now()
	l.run(&f.o)
	if took := f.b.Now().Sub(start); took > 0 {
		<-time.After(owingRest * min(took, time.Second))
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
		wait = s.f.o.Access.Logins().Failed(s.address(), "", s.f.b.Now())
	}
	s.refuseLogin(wait)
}

// refuseLogin ends a connection that has shown no or a wrong password, and has to wait before the next try.
func (s *session) refuseLogin(wait time.Duration) {
	if wait > 0 {
		s.refuse(tooManyLogins)
	} else {
		s.refuse(wrongPassword)
	}
	s.hangUp()
}

// address is the client's, for the limiter of logins.
func (s *session) address() string {
	if a := s.conn.RemoteAddr(); a != nil {
		return a.String()
	}
	return ""
}
