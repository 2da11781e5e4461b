package httpapi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"broker/access"
	"broker/core"
)

// seat is a connection that records when it is closed.
type seat struct {
	net.Conn
	from   string
	closed bool
}

// RemoteAddr implements net.Conn.
func (s *seat) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(s.from), Port: 5} }

// Close implements net.Conn.
func (s *seat) Close() error {
	s.closed = true
	return nil
}

func enter(l *connLimiter, from string) *seat {
	s := &seat{from: from}
	l.connState(s, http.StateNew)
	return s
}

func closedOf(seats []*seat) (n int) {
	for _, s := range seats {
		if s.closed {
			n++
		}
	}
	return n
}

// Newcomers displace connections without a login, those of the address with the most first, also busy ones.
func TestGuestsDisplaceGuestsOnly(t *testing.T) {
	t.Parallel()
	const limit = 4
	l := newConnLimiter(limit)
	tenant := access.NamedHolder("tenant", false)
	idle := enter(l, "192.0.2.7")
	if !l.take(idle, tenant) {
		t.Fatal("a principal gets no connection")
	}
	var slow []*seat
	for range 3 * guestConns {
		s := enter(l, "192.0.2.66")
		l.count(s, 1)
		slow = append(slow, s)
	}
	checks := []*seat{enter(l, "192.0.2.1"), enter(l, "192.0.2.2")}
	if idle.closed {
		t.Error("the idle connection of a principal is displaced")
	}
	if n := closedOf(checks); n > 0 {
		t.Errorf("%d health checks of other addresses are displaced", n)
	}
	if left := len(slow) - closedOf(slow); left != limit+guestConns-3 {
		t.Errorf("%d connections of one address stay", left)
	}
	for i, s := range slow {
		if s.closed != (i < closedOf(slow)) {
			t.Fatal("not the oldest connections are displaced")
		}
	}
	if !l.take(checks[0], access.NamedHolder("root", true)) || l.places.Open() != limit+guestConns {
		t.Error("an administrator is not let in beside them")
	}
}

func TestConnectionsWithoutALoginAreClosedWhenIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newConnLimiter(0)
		guest, member := enter(l, "192.0.2.1"), enter(l, "192.0.2.1")
		for _, s := range []*seat{guest, member} {
			l.connState(s, http.StateActive)
		}
		if !l.take(member, access.NamedHolder("tenant", false)) {
			t.Error("a principal gets no connection")
		}
		for _, s := range []*seat{guest, member} {
			l.connState(s, http.StateIdle)
		}
		<-time.After(guestIdle)
		synctest.Wait()
		if !guest.closed || member.closed {
			t.Errorf("closed: guest %v, member %v", guest.closed, member.closed)
		}
	})
}

// A principal above its share loses its own idle connections. If all are busy, it gets no more.
func TestPrincipalsShareTheConnections(t *testing.T) {
	t.Parallel()
	l := newConnLimiter(8)
	tenant, other := access.NamedHolder("tenant", false), access.NamedHolder("other", false)
	root := access.NamedHolder("root", true)
	login := func(h access.Holder) (*seat, bool) {
		s := enter(l, "192.0.2.1")
		return s, l.take(s, h)
	}
	var all []*seat
	for range 6 {
		s, ok := login(tenant)
		if !ok {
			t.Fatal("an idle connection makes no room for another of its principal")
		}
		all = append(all, s)
	}
	if n := closedOf(all); n != 2 || !all[0].closed || !all[1].closed {
		t.Errorf("%d connections are closed, want the two oldest", n)
	}
	for _, s := range all[2:] {
		l.count(s, 1)
	}
	if _, ok := login(tenant); ok {
		t.Error("one principal has more than half of the connections")
	}
	for _, h := range []access.Holder{other, root, root} {
		s, ok := login(h)
		if !ok {
			t.Fatal("nothing is left for other principals")
		}
		l.count(s, 1)
	}
	for _, s := range all {
		l.connState(s, http.StateClosed)
	}
	if _, ok := login(tenant); !ok {
		t.Error("closed connections keep their places")
	}
}

// Clients that never read their responses only use up connections; health checks are still answered.
func TestHealthIsAnsweredBesideClientsThatNeverRead(t *testing.T) {
	t.Parallel()
	const limit = 4
	f := setup(t, Options{MaxConns: limit})
	f.broker.queues = make([]core.QueueInfo, maxQueues)
	for i := range f.broker.queues {
		f.broker.queues[i].Name = strings.Repeat("q", 400) + strconv.Itoa(i)
	}
	f.ready()
	dial := dialTo(t, f.HTTP())
	for range limit {
		c := dial()
		_ = c.(*net.TCPConn).SetReadBuffer(4096) // a hint
		if _, err := io.WriteString(c,
			strings.Repeat("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 20)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil { // the first response begins; read no more
			t.Fatal(err)
		}
	}
	ask := func(path string) int {
		return statusOf(t, dial(), "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	for deadline := time.After(time.Minute); ask("/metrics") != http.StatusServiceUnavailable; {
		select {
		case <-deadline:
			t.Fatal("the limit is never reached")
		default:
		}
	}
	for range 2 * guestConns {
		if got := ask("/healthz"); got != http.StatusOK {
			t.Fatalf("/healthz: %d", got)
		}
	}
}

func TestWaitingConnectionsMakeRoomForNewOnes(t *testing.T) {
	t.Parallel()
	visit := dialTo(t, New(Options{Log: zerolog.Nop(), MaxConns: 3}).HTTP())
	// request gets a response; then the connection is idle.
	request := func(c net.Conn) {
		t.Helper()
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }() // read to its end
		if text, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(text), "ok") {
			t.Fatalf("%s, %v", text, err)
		}
	}
	kept, silent, half := visit(), visit(), visit()
	if _, err := io.WriteString(half,
		"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf"); err != nil {
		t.Fatal(err)
	}
	// makesRoom sends requests, on the kept connection and on new ones, until c is closed. A missing header or body
	// closes it too, but only after ten seconds.
	makesRoom := func(c net.Conn, who string) {
		t.Helper()
		end := make(chan error, 1)
		go func() {
			_, err := c.Read(make([]byte, 1))
			end <- err
		}()
		for range 1000 {
			request(kept)
			request(visit())
			select {
			case err := <-end:
				if err == nil {
					t.Errorf("%s is told something", who)
				}
				return
			case <-time.After(time.Millisecond):
			}
		}
		t.Fatalf("%s is still there", who)
	}
	makesRoom(silent, "the one that never spoke")
	makesRoom(half, "the one whose body does not come")
	request(kept)
}

// serveLimited serves the API of a real service with a limit of connections, to principals and a password.
func serveLimited(t *testing.T, limit int, p map[string][]string) (dial func() net.Conn) {
	t.Helper()
	f := setupAPI(t, Options{MaxConns: limit, Password: "right", Access: principals(t, p)})
	return dialTo(t, f.server.HTTP())
}

// dialTo serves connections until the end of the test. dial makes one.
func dialTo(t *testing.T, s *http.Server) (dial func() net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		_ = s.Close() // the test is over
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return func() net.Conn {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() }) // it may be closed already
		return c
	}
}

// requestAs is a request with a token or password.
func requestAs(secret, line, body string) string {
	return fmt.Sprintf("%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", line, secret, len(body), body)
}

// statusOf sends a request and returns the status of its response.
func statusOf(t *testing.T, c net.Conn, request string) int {
	t.Helper()
	_ = c.SetDeadline(deadlineIn(time.Minute))
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close() // only the status matters
	return resp.StatusCode
}

func TestClientsWithoutALoginDoNotCloseThePortToOthers(t *testing.T) {
	t.Parallel()
	const limit = 8
	for name, request := range map[string]string{
		"half a body":   "POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf",
		"a slow reader": strings.Repeat("GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
		"silence":       "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dial := serveLimited(t, limit, map[string][]string{"tenant": {"consume"}})
			kept := dial()
			if got := statusOf(t, kept, requestAs("right", "GET /api/v1/queues", "")); got != http.StatusOK {
				t.Fatalf("status %d", got)
			}
			for range limit + guestConns + 40 {
				c := dial()
				_ = c.(*net.TCPConn).SetReadBuffer(4096) // a hint
				_, _ = io.WriteString(c, request)        // it may be displaced already
			}
			if got := statusOf(t, kept, requestAs("right", "GET /api/v1/queues", "")); got != http.StatusOK {
				t.Errorf("an idle connection with the right password: %d", got)
			}
			if got := statusOf(t, dial(), requestAs("right", "GET /api/v1/queues", "")); got != http.StatusOK {
				t.Errorf("a new connection with the right password: %d", got)
			}
		})
	}
}

func TestLongPollsOfOnePrincipalLeaveConnectionsForOthers(t *testing.T) {
	t.Parallel()
	const limit = 8
	dial := serveLimited(t, limit, map[string][]string{"tenant": {"consume"}, "other": {"consume"}})
	poll := requestAs("tenant", "POST /api/v1/queues/q/lease?wait=60s", "{}")
	refused := make(chan int, limit)
	for range limit {
		c := dial()
		_ = c.SetDeadline(deadlineIn(time.Minute))
		go func() { // ends with the connection
			if _, err := io.WriteString(c, poll); err != nil {
				return
			}
			if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
				refused <- resp.StatusCode
				_ = resp.Body.Close() // only the status matters
			}
		}()
	}
	for range limit / 2 {
		if status := <-refused; status != http.StatusServiceUnavailable {
			t.Errorf("a long poll above the share: %d", status)
		}
	}
	for _, who := range []string{"right", "other"} {
		got := statusOf(t, dial(), requestAs(who, "POST /api/v1/queues/q/lease", "{}"))
		if got != http.StatusNoContent {
			t.Errorf("%s: %d", who, got)
		}
	}
}
