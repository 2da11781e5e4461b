package eventloop

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"broker/core/notify"
)

// handshakeFor limits the duration of a TLS handshake.
const handshakeFor = 10 * time.Second

// Read buffers: of a TLS connection, one record; and of other connections, which have one only while they read.
const (
	tlsRead   = 16 << 10
	plainRead = 64 << 10
)

var plainBuffers = sync.Pool{New: func() any { return new([plainRead]byte) }}

func (s *Server) hasTLS() bool {
	if s.blocking {
		return false // each connection has a loop of its own
	}
	if s.attached {
		return true
	}
	for _, b := range s.bound {
		if b.TLS != nil {
			return true
		}
	}
	return false
}

// startTLSLoop starts a loop for TLS connections. The goroutine that holds its turn serves it: the reader of a
// connection that has input, or else a goroutine of the loop, which ends with s.running.
func (s *Server) startTLSLoop() {
	l := newLoop()
	kick, kickLater := notify.NewSignal(), notify.NewSignal()
	l.schedule, l.scheduleLater = kick.Set, kickLater.Set
	s.loopMu.Lock()
	s.loops = append(s.loops, l)
	s.loopMu.Unlock()
	s.tlsLoops = append(s.tlsLoops, l)
	s.goroutines.Go(func() {
		for {
			select {
			case <-kick:
				l.inTurn(l.run)
			case <-kickLater:
				l.inTurn(l.runLater)
			case <-s.running.Done():
				l.inTurn(l.run)
				return
			}
		}
	})
}

// startOwnLoop makes a loop for one connection. Its turns run on the connection's reader, and on goroutines that end
// with their turn.
func (s *Server) startOwnLoop() *loop {
	l := newLoop()
	l.own, l.scratch = true, nil
	l.schedule = func() { go l.inTurn(l.run) }
	l.scheduleLater = func() { go l.inTurn(l.runLater) }
	s.loopMu.Lock()
	defer s.loopMu.Unlock()
	s.ownLoops[l] = struct{}{}
	return l
}

// endOwnLoop forgets the loop of a connection that is gone.
func (s *Server) endOwnLoop(l *loop) {
	s.loopMu.Lock()
	defer s.loopMu.Unlock()
	delete(s.ownLoops, l)
}

// addStreamConn starts the reader of a connection. The reader ends when the peer or the conn closes the socket.
// Connections with the same configuration share its session ticket keys, so that clients can resume their sessions.
func (s *Server) addStreamConn(nc net.Conn, b bound, c *conn) {
	w := &streamTransport{nc: nc, drained: c.Wake, goOn: make(chan struct{}, 1)}
	below := nc
	if w.records = newRecordConn(nc, &w.backlog, c.Wake); w.records != nil {
		below = w.records
	}
	if b.TLS != nil {
		w.tc = tls.Server(below, b.TLS())
		w.stream = w.tc
	} else {
		w.stream = below
	}
	s.startStream(w, c)
}

// startStream starts the reader of a connection.
func (s *Server) startStream(w *streamTransport, c *conn) {
	c.transport = w
	c.place.guest(func() { _ = w.nc.Close() }) // its reader sees the end
	if s.blocking {
		c.loop = s.startOwnLoop()
	} else {
		c.loop = s.tlsLoops[int(s.tlsNext.Add(1))%len(s.tlsLoops)]
	}
	if sc, ok := w.nc.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { c.fd = int(fd) }) // on failure it is listed as -1
		}
	}
	s.goroutines.Go(func() { w.read(c) })
}

// streamTransport is a connection that gnet does not serve: one with TLS, or any where the broker blocks. A reader
// goroutine waits for input and serves the conn with it, in the turn of the conn's loop.
type streamTransport struct {
	nc     net.Conn
	stream net.Conn  // what the client sees: tc, or records, or nc
	tc     *tls.Conn // nil: no TLS
	// below the stream; nil if tc existed before, as between nodes: then each send is written by the backlog's
	// goroutine
	records *recordConn
	backlog backlog
	drained func()

	goOn   chan struct{} // lets a reader continue that waits
	paused bool          // the reader must not continue; used on the loop
	waits  bool          // the reader waits because of paused
}

// read is the reader goroutine.
func (w *streamTransport) read(c *conn) {
	if err := w.handshake(c.srv.handshakes); err != nil {
		c.srv.log.Debug().Err(err).Str("frontend", c.group.name).Str("remote",
			c.remoteText()).Msg("tls handshake failed")
		_ = w.nc.Close() // there is no TLS session to end
		c.release()
		c.endLoop()
		return
	}
	if w.records != nil {
		w.records.connect()
	}
	opened := w.serve(c, func() {
		c.loop.conns[c] = struct{}{}
		c.open()
	})
	receive := w.receiver()
	for opened {
		p, done, err := receive()
		goesOn := len(p) == 0 || w.serve(c, func() { c.onData(p) })
		done()
		if !goesOn {
			return
		}
		if err != nil {
			w.serve(c, func() { c.onHangup(errors.Is(err, io.EOF)) })
			return
		}
	}
}

func (w *streamTransport) handshake(ctx context.Context) error {
	if w.tc == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeFor)
	defer cancel()
	return w.tc.HandshakeContext(ctx)
}

// receiver returns a function that waits for input. The input is valid until done.
func (w *streamTransport) receiver() func() (p []byte, done func(), err error) {
	if w.tc == nil && w.records != nil {
		return w.records.receive
	}
	buf := make([]byte, tlsRead)
	return func() ([]byte, func(), error) {
		n, err := w.stream.Read(buf)
		return buf[:n], func() {}, err
	}
}

// serve calls f in a turn of the loop, and waits while the conn is paused. It returns false when the server has ended.
func (w *streamTransport) serve(c *conn, f func()) bool {
	waits := false
	c.loop.inTurn(func() {
		c.loop.enter()
		f()
		c.loop.exit()
		w.waits = w.paused
		waits = w.paused
	})
	if !waits {
		return c.srv.running.Err() == nil
	}
	select {
	case <-w.goOn:
		return true
	case <-c.srv.running.Done():
		return false
	}
}

func (w *streamTransport) send(p []byte) (int, error) {
	if w.records == nil {
		if !w.backlog.append(p) {
			w.backlog.start(p, keptOpen{w.stream}, w.drained)
		}
		return len(p), nil
	}
	return w.sendRecords(p)
}

// sendRecords encrypts output piece by piece, so that only a small part of it can count as pending when it is written.
func (w *streamTransport) sendRecords(p []byte) (taken int, err error) {
	if _, failed := w.records.pending(); failed {
		return 0, net.ErrClosed
	}
	w.records.collect()
	for rest := p; len(rest) > 0 && err == nil; {
		piece := rest[:min(len(rest), tlsRead)]
		rest = rest[len(piece):]
		if _, err = w.stream.Write(piece); err == nil {
			w.records.add(len(piece))
			taken += len(piece)
		}
	}
	lost, flushErr := w.records.flush()
	if err == nil {
		err = flushErr
	}
	return taken - lost, err
}

func (w *streamTransport) pending() (int, bool) {
	if w.records != nil {
		return w.records.pending()
	}
	return w.backlog.state()
}

// finish sends the close alert from a goroutine, since it may block; it ends after lingerTimeout at the latest.
func (w *streamTransport) finish() {
	if w.tc == nil {
		closeWrite(w.nc)
		return
	}
	go func() {
		_ = w.tc.SetWriteDeadline(time.Now().Add(lingerTimeout)) // on a dead socket the next call fails too
		_ = w.tc.CloseWrite()                                    // the peer may be gone already
	}()
}

func (w *streamTransport) hangup(bool) error { return nil }

func (w *streamTransport) peer() (state peerState) {
	sc, ok := w.nc.(syscall.Conn)
	if !ok {
		return peerThere
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return peerThere
	}
	_ = raw.Control(func(fd uintptr) { state = peerOf(int(fd)) }) // the reader notices a closed socket
	return state
}

func (w *streamTransport) pause() bool {
	w.paused = true
	return true
}

func (w *streamTransport) resume(*conn) error {
	w.paused = false
	if w.waits {
		w.waits = false
		w.goOn <- struct{}{} // does not block: the reader waits for it
	}
	return nil
}

// closeWrite tells the peer of a connection without TLS that no more bytes will come.
func closeWrite(nc net.Conn) {
	if half, may := nc.(interface{ CloseWrite() error }); may {
		_ = half.CloseWrite() // the peer may be gone already
	}
}

// close closes the connection, with TLS from a goroutine; crypto/tls gives up sending the alert after five seconds.
func (w *streamTransport) close() {
	_ = w.resume(nil) // lets the reader see the end; it cannot fail
	if w.tc == nil {
		_ = w.nc.Close() // the peer may be gone already
		return
	}
	go func() { _ = w.tc.Close() }() // the peer may be gone already
}
