package replica

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
)

// Every connection between members begins with a greeting. Nothing else is sent before the answer:
//
//	"bkr1" │ length, 4 bytes │ greeting in JSON      length, 4 bytes │ answer in JSON
//
// What follows depends on the kind: raft's own protocol, one request and one answer in the same form, or the bytes of a
// client.
const magic = "bkr1"

// maxFrame bounds a greeting, a request or an answer.
const maxFrame = 1 << 20

// Kinds of connections. On the wire; never changed.
const (
	kindRaft   = "raft"
	kindCall   = "call"
	kindClient = "client"
)

// greetFor is how long the greeting of a connection may take.
const greetFor = 5 * time.Second

// greeting says what a connection is for.
type greeting struct {
	Kind    string `json:"kind"`
	From    string `json:"from"`
	To      string `json:"to"`
	Cluster string `json:"cluster,omitempty"` // empty: the caller belongs to no cluster yet

	Frontend string `json:"frontend,omitempty"` // of a client
	Client   string `json:"client,omitempty"`   // its address

	formats
}

// answer ends a greeting; Error is empty if it was accepted.
type answer struct {
	Error  string `json:"error,omitempty"`
	TooOld bool   `json:"too_old,omitempty"` // with Error: one of the two programs is too old for the other
}

func writeFrame(w io.Writer, prefix string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	frame := binary.BigEndian.AppendUint32([]byte(prefix), uint32(len(body)))
	_, err = w.Write(append(frame, body...))
	return err
}

// readFrame reads exactly the frame and no further byte.
func readFrame(r io.Reader, prefix string, v any) error {
	head := make([]byte, len(prefix)+4)
	if _, err := io.ReadFull(r, head); err != nil {
		return err
	}
	if string(head[:len(prefix)]) != prefix {
		return errors.New("the other side is not a node of a broker cluster")
	}
	size := binary.BigEndian.Uint32(head[len(prefix):])
	if size > maxFrame {
		return fmt.Errorf("frame of %d bytes", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	return json.Unmarshal(body, v)
}

// dial opens a connection of a kind to a member.
func (n *Node) dial(ctx context.Context, to Member, g greeting) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, greetFor)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", to.Address)
	if err != nil {
		return nil, err
	}
	if n.o.TLS != nil {
		conn = tls.Client(conn, n.o.TLS)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	g.From, g.To, g.Cluster, g.formats = n.o.ID, to.ID, n.clusterID(), n.formats()
	var a answer
	err = writeFrame(conn, magic, g)
	if err == nil {
		err = readFrame(conn, "", &a)
	}
	if err == nil && a.Error != "" {
		err = &refusedError{by: to.ID, why: a.Error, tooOld: a.TooOld}
	}
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close() // never used
		return nil, fmt.Errorf("call %s: %w", to, err)
	}
	return conn, nil
}

// refusedError means that the other node has refused a connection.
type refusedError struct {
	by, why string
	tooOld  bool // a repeated call would fail too
}

func (e *refusedError) Error() string { return e.by + " refused: " + e.why }

// serve accepts connections until the listener is closed.
func (n *Node) serve() {
	for {
		conn, err := n.o.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			n.sleep(100 * time.Millisecond) // for example, no free descriptors
			continue
		}
		n.running.Go(func() { n.accept(conn) }) // ends within greetFor, unless a call is being answered
	}
}

// isHangup reports whether a connection has ended before its greeting: the other side has left, or this node stops.
func isHangup(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, net.ErrClosed)
}

// accept answers a greeting and passes the connection on.
func (n *Node) accept(conn net.Conn) {
	if n.o.TLS != nil {
		conn = tls.Server(conn, n.o.TLS)
	}
	_ = conn.SetDeadline(deadlineIn(greetFor)) // on a dead socket the next call fails too
	undo := n.stream.endWith(conn)
	defer undo()
	var g greeting
	if err := readFrame(conn, magic, &g); err != nil {
		if !isHangup(err) {
			n.log.Warn("connection between nodes refused", "remote", conn.RemoteAddr().String(), "error", err.Error())
		}
		_ = conn.Close() // the error has no receiver
		return
	}
	why := tooOld(n.formats(), g.formats, n.o.ID, g.From)
	a := answer{Error: why, TooOld: why != ""}
	if why == "" {
		a.Error = n.objection(&g)
	}
	if a.Error != "" {
		n.log.Warn("connection between nodes refused", "remote", conn.RemoteAddr().String(), "node", g.From, "reason",
			a.Error)
		_ = writeFrame(conn, "", a) // closed anyway
		_ = conn.Close()
		return
	}
	if err := writeFrame(conn, "", answer{}); err != nil {
		_ = conn.Close() // the error has no receiver
		return
	}
	if g.Kind != kindCall && !undo() {
		_ = conn.Close() // this node is being closed
		return
	}
	_ = conn.SetDeadline(time.Time{}) // on a dead socket the next call fails too
	switch g.Kind {
	case kindRaft:
		n.stream.pass(conn, g.From)
	case kindCall:
		n.serveCall(conn, &g)
	case kindClient:
		n.o.Client(conn, g.Frontend, g.Client)
	default:
		_ = conn.Close() // objection has refused it
	}
}

// deadlineIn is the deadline of a socket.
func deadlineIn(d time.Duration) time.Time {
	return time.Now().Add(d) //nolint:forbidigo // deadlines of sockets are in the kernel's time
}

// objection returns why a connection is refused; empty: it is accepted. Calls of nodes that belong to no cluster or to
// another one are accepted: they find their cluster, or their mistake, by such calls.
func (n *Node) objection(g *greeting) string {
	own := n.clusterID()
	switch {
	case g.To != n.o.ID:
		return fmt.Sprintf("this is node %s, not %s", n.o.ID, g.To)
	case g.From == n.o.ID:
		return fmt.Sprintf("two nodes call themselves %s", g.From)
	case g.Kind != kindRaft && g.Kind != kindCall && g.Kind != kindClient:
		return fmt.Sprintf("unknown kind of connection %q", g.Kind)
	case g.Cluster == own, g.Kind == kindCall: // each operation checks for itself
		return ""
	case own == "":
		return fmt.Sprintf("node %s is not a member of a cluster yet", n.o.ID)
	}
	return fmt.Sprintf("node %s belongs to cluster %s, node %s to %s", n.o.ID, own, g.From, g.Cluster)
}

// stream is raft's view of the connections.
type stream struct {
	n     *Node
	conns chan net.Conn

	done context.Context // all calls end when it is done
	end  context.CancelFunc

	mu       sync.Mutex               // guards both maps
	open     map[*streamConn]struct{} // opened by raft of this node
	accepted map[*streamConn]struct{} // opened by raft of other members
}

func newStream(n *Node) *stream {
	s := &stream{
		n: n, conns: make(chan net.Conn, 16), open: make(map[*streamConn]struct{}),
		accepted: make(map[*streamConn]struct{}),
	}
	s.done, s.end = context.WithCancel(context.Background())
	return s
}

// streamConn is a connection that raft uses.
type streamConn struct {
	net.Conn

	s    *stream
	in   map[*streamConn]struct{} // one of the maps of s
	from string                   // id of the member that opened it; empty: this node
}

// track remembers a connection until it is closed. If all calls have ended, it closes the connection and returns nil.
func (s *stream) track(conn net.Conn, in map[*streamConn]struct{}, from string) *streamConn {
	c := &streamConn{conn, s, in, from}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done.Err() != nil {
		_ = conn.Close() // never used
		return nil
	}
	in[c] = struct{}{}
	return c
}

// Close implements net.Conn.
func (c *streamConn) Close() error {
	c.s.mu.Lock()
	delete(c.in, c)
	c.s.mu.Unlock()
	if c.from != "" {
		c.s.n.connectionEnded(c.from)
	}
	return c.Conn.Close()
}

// closeCalls ends all current and future calls in both directions: a member that does not answer, because it is busy or
// stopped, must not delay the end of this node.
func (s *stream) closeCalls() {
	s.end()
	s.closeAll(s.open)
	s.closeAccepted()
}

// closeAccepted ends all calls from other members; they call again.
func (s *stream) closeAccepted() { s.closeAll(s.accepted) }

func (s *stream) closeAll(conns map[*streamConn]struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range conns {
		_ = c.Conn.Close() // raft closes it again
	}
	clear(conns)
}

// endWith makes a connection fail once all calls end. The returned function undoes that; it returns false if the calls
// have ended.
func (s *stream) endWith(conn net.Conn) (undo func() bool) {
	return context.AfterFunc(s.done, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
}

// pass passes a connection from another member to raft; from is empty for a connection of this node with itself.
func (s *stream) pass(conn net.Conn, from string) {
	c := s.track(conn, s.accepted, from)
	if c == nil {
		return
	}
	select {
	case s.conns <- c:
	case <-s.n.closed:
		_ = c.Close() // raft does not accept it
	}
}

// Accept implements net.Listener.
func (s *stream) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.n.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. The node closes the socket.
func (s *stream) Close() error { return nil }

// Addr implements net.Listener: the address at which other members reach this node.
func (s *stream) Addr() net.Addr { return address(s.n.self.Address) }

// address is an address in the list of members.
type address string

// Network implements net.Addr.
func (address) Network() string { return "tcp" }

func (a address) String() string { return string(a) }

// Dial implements raft.StreamLayer.
func (s *stream) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(s.done, timeout)
	defer cancel()
	for _, m := range append(s.n.Members(), s.n.o.Members...) {
		if m.Address != string(to) {
			continue
		}
		if m.ID == s.n.o.ID {
			return s.self()
		}
		conn, err := s.n.dial(ctx, m, greeting{Kind: kindRaft})
		if err != nil {
			return nil, err
		}
		c := s.track(conn, s.open, "")
		if c == nil {
			return nil, net.ErrClosed
		}
		if s.n.hangs.Load() { // checked after tracking, so that either this check or closeAll catches the connection
			return nil, errors.Join(errHang, c.Close())
		}
		return c, nil
	}
	return nil, fmt.Errorf("call %s: %w", to, ErrNotMember)
}

// self is a connection of raft with itself: see campaign.
func (s *stream) self() (net.Conn, error) {
	near, far := net.Pipe()
	s.pass(far, "")
	if c := s.track(near, s.open, ""); c != nil {
		return c, nil
	}
	return nil, net.ErrClosed
}
