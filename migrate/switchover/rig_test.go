package switchover

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"
)

// rig is a switch with a server and a broker whose replies the test sends.
type rig struct {
	*Switch

	t      *testing.T
	broker net.Listener
	server net.Listener
}

// patience limits how long a test waits for bytes.
const patience = 2 * time.Minute

func setup(t *testing.T, protocol string) *rig {
	t.Helper()
	r := &rig{t: t, broker: listen(t), server: listen(t)}
	var err error
	r.Switch, err = NewSwitch(Options{
		Protocol: protocol, Server: r.server.Addr().String(), Broker: r.broker.Addr().String(), Password: "secret",
		Changed: func([]string, State) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // may be closed
	return l
}

// end is the test's end of a connection.
type end struct {
	t    *testing.T
	name string
	net.Conn
}

func (r *rig) dial(l net.Listener, name string) *end {
	r.t.Helper()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	return r.end(conn, name)
}

func (r *rig) accept(l net.Listener, name string) *end {
	r.t.Helper()
	conn, err := l.Accept()
	if err != nil {
		r.t.Fatal(err)
	}
	return r.end(conn, name)
}

func (r *rig) end(conn net.Conn, name string) *end {
	r.t.Cleanup(func() { _ = conn.Close() }) // may be closed
	return &end{r.t, name, conn}
}

// join connects a client, and returns its end and the server's.
func (r *rig) join() (client, server *end) {
	r.t.Helper()
	door := listen(r.t)
	client = r.dial(door, "client")
	inner, err := door.Accept()
	if err != nil {
		r.t.Fatal(err)
	}
	outer, err := net.Dial("tcp", r.server.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	server = r.accept(r.server, "server")
	done := make(chan struct{})
	go func() { // ends when the test closes the client; the cleanup waits for it
		defer close(done)
		r.Join(inner, outer)
	}()
	r.t.Cleanup(func() {
		_, _ = client.Close(), server.Close()
		select {
		case <-done:
		case <-time.After(patience):
			r.t.Error("Join did not return")
		}
	})
	return client, server
}

// atBroker is the broker's end of the next connection.
func (r *rig) atBroker() *end {
	r.t.Helper()
	return r.accept(r.broker, "broker")
}

// cutOver cuts queues over without asking the broker.
func (r *rig) cutOver(queues ...string) {
	r.t.Helper()
	if err := r.set(New, queues); err != nil {
		r.t.Fatal(err)
	}
}

func (e *end) send(s string) {
	e.t.Helper()
	if _, err := io.WriteString(e, s); err != nil {
		e.t.Fatalf("%s: %v", e.name, err)
	}
}

// want reads exactly these bytes.
func (e *end) want(s string) {
	e.t.Helper()
	_ = e.SetReadDeadline(time.Now().Add(patience)) // of an open connection
	got := make([]byte, len(s))
	n, err := io.ReadFull(e, got)
	if err != nil || string(got) != s {
		e.t.Fatalf("%s got %q (%v), not %q", e.name, got[:n], err, s)
	}
}

// wantEnd reads the end of the connection.
func (e *end) wantEnd() {
	e.t.Helper()
	_ = e.SetReadDeadline(time.Now().Add(patience)) // of an open connection
	var rest bytes.Buffer
	if _, err := io.Copy(&rest, e); isTimeout(err) || rest.Len() > 0 {
		e.t.Fatalf("%s got %q (%v), not the end", e.name, rest.String(), err)
	}
}

func isTimeout(err error) bool {
	timeout, ok := err.(net.Error) //nolint:errorlint // as Copy returns it
	return ok && timeout.Timeout()
}
