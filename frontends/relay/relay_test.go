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

	"broker/frontends/shared/httpserver"
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

// homeOf is for Handlers.
func homeOf(r *http.Request) httpserver.Home {
	switch r.URL.Path {
	case "/healthz":
		return httpserver.AtEach
	case "/lease":
		return httpserver.AtNode
	}
	return httpserver.AtLeader
}

// web starts both nodes' HTTP servers, each answering with its name and the client, and returns the follower's URL.
func (f *fixture) web() string {
	says := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost { // net/http reads its body before it answers
				_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // of an open connection
			}
			_, _ = io.WriteString(w, name+" "+r.RemoteAddr+" "+r.Header.Get(relayAddress)) // the test reads it
		})
	}
	handlers := func(name string) Handlers {
		return Handlers{Own: says(name), OverLink: says(name + "'s link"), HomeOf: homeOf}
	}
	inner := &http.Server{Handler: f.leader.Handler(handlers("leader"))}
	go func() { _ = inner.Serve(f.leader.Tunnel()) }() // ends with the tunnel
	f.Cleanup(func() { _ = inner.Close() })            // nothing is left
	outer := httptest.NewServer(f.follower.Handler(handlers("follower")))
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
	if answer := f.get(url + "/healthz"); !strings.HasPrefix(answer, "follower 127.0.0.1:") ||
		strings.Contains(answer, "6.6.6.6") {
		t.Errorf("answered by %q", answer)
	}
}

// Requests that a node may serve over its link are served there, while there is a link that takes them, and this node
// does not lead.
func TestRequestsAreServedOverTheLink(t *testing.T) {
	f := setup(t)
	url := f.web()
	for _, step := range []struct {
		what, path, by string
		change         func()
	}{
		{"without a link", "/lease", "leader", func() {}},
		{"over a link of a build that serves none", "/lease", "leader", func() { f.follower.Sessions(greeter{}, "workq") }},
		{"over a link", "/lease", "follower's link", func() { f.follower.Sessions(greeter{}, "workq", HTTP) }},
		{"that only the leader serves", "/jobs", "leader", func() {}},
		{"of the node", "/healthz", "follower", func() {}},
		{"as the leader", "/lease", "follower", func() { f.follower.Lead(greeter{}) }},
	} {
		step.change()
		answer := f.get(url + step.path)
		if by, _, _ := strings.Cut(answer, " 127."); by != step.by || strings.Contains(answer, "6.6.6.6") {
			t.Errorf("%s: answered by %q", step.what, answer)
		}
	}
	if n := f.follower.Requests(); n != 3 {
		t.Errorf("%d requests were passed on", n)
	}
}

// A client that connects while its node starts is served over the node's link: it would end with the leader otherwise.
func TestClientsOfAStartingNodeWaitForItsLink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, node := New(2, "workq"), &member{}
		node.lead("n1", New(2))
		client, accepted := net.Pipe()
		line := make(chan string, 1)
		go func() {
			said, _ := bufio.NewReader(client).ReadString('\n') // empty says it
			line <- said
			_ = client.Close() // the server closes its side
		}()
		g.done.Go(func() { g.pass("workq", accepted) })
		synctest.Wait()
		g.Join(node)
		time.Sleep(2 * linkWait)
		if n, _ := g.Counts(); n != 0 {
			t.Error("the client is passed on")
		}
		g.Sessions(greeter{}, "workq")
		if said := <-line; said != "workq nobody\n" {
			t.Errorf("the client was greeted with %q", said)
		}
		g.Close()
	})
}

// Without a link, a client is passed on once that is known.
func TestClientsOfALeaderWithoutLinksArePassedOn(t *testing.T) {
	f := setup(t)
	f.follower.atFollower["workq"] = true
	f.follower.Link(false)
	if conn, line := f.connect(); line != "workq "+conn.LocalAddr().String()+"\n" {
		t.Errorf("the client was greeted with %q", line)
	}
}

// When the link has ended, requests wait for the next one, and are passed on if it does not come.
func TestRequestsWaitForTheNextLink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		node := &member{}
		node.lead("n1", nil)
		g := New(1, HTTP)
		g.Join(node)
		g.Sessions(nil)
		began := time.Now()
		if w := g.wayOf(request(t, "/lease"), homeOf); w != wayProxy || time.Since(began) < linkWait {
			t.Errorf("way %d after %v", w, time.Since(began))
		}
		if began = time.Now(); g.wayOf(request(t, "/jobs"), homeOf) != wayProxy || time.Since(began) > 0 {
			t.Errorf("a request that takes no link waits for %v", time.Since(began))
		}
		found := make(chan way, 1)
		go func() { found <- g.wayOf(request(t, "/lease"), homeOf) }()
		synctest.Wait()
		g.Sessions(greeter{}, HTTP)
		if w := <-found; w != wayLink {
			t.Errorf("way %d", w)
		}
		g.Close()
	})
}

func request(t *testing.T, path string) *http.Request {
	t.Helper()
	return httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil)
}

// A request that reaches a node before it is a member is passed on to the leader once the node is one.
func TestRequestsWaitUntilTheirNodeIsAMember(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(1)
		found := make(chan way, 1)
		go func() { found <- g.wayOf(request(t, "/jobs"), homeOf) }()
		synctest.Wait()
		if len(found) > 0 {
			t.Fatal("the request did not wait")
		}
		node := &member{}
		node.lead("n1", nil)
		g.Join(node)
		if <-found != wayProxy {
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
			if g.wayOf(request(t, path), homeOf) != wayOwn || time.Since(began) > 0 {
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
		if g.wayOf(request(t, "/lease"), homeOf) != wayOwn || time.Since(began) > leaderRetry {
			t.Error("the request waited for", time.Since(began))
		}
	})
}
