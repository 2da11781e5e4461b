package relay

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// member is a Node whose leader uses another gateway.
type member struct {
	mu     sync.Mutex // guards the fields below
	leader string
	to     *Gateway
}

func (m *member) lead(id string, g *Gateway) {
	m.mu.Lock()
	m.leader, m.to = id, g
	m.mu.Unlock()
}

func (m *member) LeaderID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leader
}

func (m *member) IsLeader() bool { return false }

func (m *member) Ready(context.Context) bool { return m.LeaderID() != "" }

func (m *member) DialLeader(_ context.Context, frontend, client string) (net.Conn, error) {
	m.mu.Lock()
	to := m.to
	m.mu.Unlock()
	if to == nil {
		return nil, errors.New("no leader")
	}
	near, far := net.Pipe()
	go to.FromMember(far, frontend, client) // ends once the server has the connection
	return near, nil
}

// greeter is a Server that writes the front-end and client of a connection, and closes it after it has read a line.
type greeter struct{}

func (greeter) Pass(frontend string, conn net.Conn, client net.Addr) bool {
	go func() { // ends with the connection
		defer func() { _ = conn.Close() }() // all is said
		from := "nobody"
		if client != nil {
			from = client.String()
		}
		if _, err := io.WriteString(conn, frontend+" "+from+"\n"); err != nil {
			return
		}
		_, _ = bufio.NewReader(conn).ReadString('\n') // until the test has enough
	}()
	return true
}

// fixture is a follower and a leader.
type fixture struct {
	*testing.T
	follower, leader *Gateway
	node             *member
	socket           net.Listener
}

func setup(t *testing.T) *fixture {
	t.Helper()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, follower: New(2), leader: New(2), node: &member{}, socket: socket}
	f.leader.Lead(greeter{})
	f.node.lead("b", f.leader)
	f.follower.Join(f.node)
	f.follower.Accept("workq", socket)
	t.Cleanup(func() {
		_ = socket.Close() // may be closed
		f.follower.Close()
		f.leader.Close()
	})
	return f
}

// connect returns a connection to the follower and its first line; empty if the connection was closed.
func (f *fixture) connect() (net.Conn, string) {
	f.Helper()
	conn, err := net.Dial("tcp", f.socket.Addr().String())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = conn.Close() }) // may be closed
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	line, _ := bufio.NewReader(conn).ReadString('\n') // empty says it
	return conn, line
}

func TestClientOfFollowerIsServedByLeaderUnderItsOwnAddress(t *testing.T) {
	f := setup(t)
	conn, line := f.connect()
	if want := "workq " + conn.LocalAddr().String() + "\n"; line != want {
		t.Errorf("the client was greeted with %q, not %q", line, want)
	}
	if n, now := f.follower.Counts(); n != 1 || now != 1 {
		t.Errorf("%d connections passed on, %d now", n, now)
	}
}

func TestLeaderServesItsOwnClients(t *testing.T) {
	f := setup(t)
	f.follower.Lead(greeter{})
	if _, line := f.connect(); line != "workq nobody\n" {
		t.Errorf("the client was greeted with %q", line)
	}
	if n, _ := f.follower.Counts(); n != 0 {
		t.Errorf("%d connections passed on", n)
	}
}

func TestRelayedConnectionsAreClosedWhenLeadChanges(t *testing.T) {
	f := setup(t)
	conn, line := f.connect()
	if line == "" {
		t.Fatal("not served")
	}
	f.node.lead("c", nil)
	f.follower.LeaderChanged()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection to the former leader ends with %v", err)
	}
}

func TestConnectionsAboveLimitAreClosed(t *testing.T) {
	f := setup(t)
	for range 2 {
		if _, line := f.connect(); line == "" {
			t.Fatal("not served below the limit")
		}
	}
	if _, line := f.connect(); line != "" {
		t.Errorf("above the limit the client was greeted with %q", line)
	}
}

// web starts both nodes' HTTP servers, each answering with its name and the client, and returns the follower's URL.
func (f *fixture) web() string {
	says := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, name+" "+r.RemoteAddr+" "+r.Header.Get(relayAddress)) // the test reads it
		})
	}
	inner := &http.Server{Handler: f.leader.Handler(says("leader")), ReadTimeout: time.Second}
	go func() { _ = inner.Serve(f.leader.Tunnel()) }() // ends with the tunnel
	f.Cleanup(func() { _ = inner.Close() })            // nothing is left
	outer := httptest.NewServer(f.follower.Handler(says("follower")))
	f.Cleanup(outer.Close)
	return outer.URL
}

func (f *fixture) get(url string) string {
	f.Helper()
	r, err := http.NewRequestWithContext(f.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		f.Fatal(err)
	}
	r.Header.Set(relayAddress, "6.6.6.6:6") // forged
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		f.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() // only read
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		f.Fatal(err)
	}
	return string(body)
}

func TestRequestsReachLeaderWithAddressThatClientsCannotForge(t *testing.T) {
	f := setup(t)
	url := f.web()
	answer := strings.Fields(f.get(url + "/api/v1/jobs"))
	if len(answer) != 2 || answer[0] != "leader" || !strings.HasPrefix(answer[1], "127.0.0.1:") {
		t.Errorf("the request was answered by %q", answer)
	}
}

// A leader that refuses a request does not wait for its body, and neither does the node that passes it on.
func TestReplyOfTheLeaderEndsARequestWithoutAnEnd(t *testing.T) {
	f := setup(t)
	url := f.web()
	for what, leads := range map[string]bool{"a leader that answers": true, "a leader that fails": false} {
		if !leads {
			f.node.lead("b", nil) // cannot be reached
		}
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		const begun = "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"
		if _, err := io.WriteString(conn, begun); err != nil {
			t.Fatal(err)
		}
		if reply, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(reply), "HTTP/1.1 ") {
			t.Errorf("%s: %q, %v", what, reply, err)
		}
		_ = conn.Close() // it has ended
	}
}

func TestRequestsAboutNodeStayThere(t *testing.T) {
	f := setup(t)
	url := f.web()
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/api/v1/cluster", "/debug/pprof/"} {
		if answer := f.get(url + path); !strings.HasPrefix(answer, "follower 127.0.0.1:") ||
			strings.Contains(answer, "6.6.6.6") {
			t.Errorf("%s was answered by %q", path, answer)
		}
	}
}

// A request that reaches a node before it is a member is passed on to the leader once the node is one.
func TestRequestsWaitUntilTheirNodeIsAMember(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(1)
		found := make(chan bool, 1)
		go func() { found <- g.awaitLeader(t.Context()) }()
		synctest.Wait()
		if len(found) > 0 {
			t.Fatal("the request did not wait")
		}
		node := &member{}
		node.lead("n1", nil)
		g.Join(node)
		if !<-found {
			t.Error("the request was not passed on")
		}
	})
}

// Requests that ask how the cluster is do not wait for a leader.
func TestRequestsAboutTheClusterDoNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(1)
		for _, path := range []string{"/cluster", "/live"} {
			began := time.Now()
			r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
			if g.leads(r) || time.Since(began) > 0 {
				t.Errorf("%s waited for %v", path, time.Since(began))
			}
		}
		g.Close()
	})
}

// A node that is being closed keeps no request.
func TestRequestsDoNotWaitForAClosedNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(1)
		g.Close()
		began := time.Now()
		if g.awaitLeader(t.Context()) || time.Since(began) > leaderRetry {
			t.Error("the request waited for", time.Since(began))
		}
	})
}
