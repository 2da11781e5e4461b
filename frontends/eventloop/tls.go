package eventloop

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"broker/core/notify"
)

// handshakeFor limits the duration of a TLS handshake.
const handshakeFor = 10 * time.Second

// tlsRead is the size of the read buffer of a TLS connection: one record.
const tlsRead = 16 << 10

func (s *Server) hasTLS() bool {
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

// startTLSLoop starts a loop on its own goroutine, which ends with s.running.
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
				l.run()
			case <-kickLater:
				l.runLater()
			case <-s.running.Done():
				l.run()
				return
			}
		}
	})
}

// addTLSConn starts the reader of a connection. The reader ends when the peer or the conn closes the socket. Connections with
// the same configuration share its session ticket keys, so that clients can resume their sessions.
func (s *Server) addTLSConn(nc net.Conn, b bound, c *conn) {
	s.startTLS(&tlsTransport{nc: nc, tc: tls.Server(nc, b.TLS()), drained: c.Wake, turn: make(chan struct{}, 1)}, c)
}

// startTLS starts the reader of a TLS connection.
func (s *Server) startTLS(w *tlsTransport, c *conn) {
	c.transport = w
	c.loop = s.tlsLoops[int(s.tlsNext.Add(1))%len(s.tlsLoops)]
	if sc, ok := w.nc.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { c.fd = int(fd) }) // on failure it is listed as -1
		}
	}
	s.goroutines.Go(func() { w.read(c) })
}

// tlsTransport is a TLS connection. A reader goroutine connects the socket with the loop that drives the conn. A writer
// goroutine runs while there is output.
type tlsTransport struct {
	nc      net.Conn
	tc      *tls.Conn
	backlog backlog
	drained func()

	turn   chan struct{} // lets the reader continue
	paused bool          // the reader must not continue; used on the loop
	held   bool          // the reader waits because of paused
}

// read is the reader goroutine. It passes each piece of input to the loop and waits until it was handled.
func (w *tlsTransport) read(c *conn) {
	ctx, cancel := context.WithTimeout(c.srv.handshakes, handshakeFor)
	err := w.tc.HandshakeContext(ctx)
	cancel()
	if err != nil {
		c.srv.log.Debug().Err(err).Str("frontend", c.group.name).Str("remote", c.remoteText()).Msg("tls handshake failed")
		_ = w.nc.Close() // there is no TLS session to end
		c.srv.release(c.group)
		return
	}
	onLoop := func(f func()) bool {
		c.loop.call(func() {
			f()
			if w.held = w.paused; !w.held {
				w.turn <- struct{}{}
			}
		})
		select {
		case <-w.turn:
			return true
		case <-c.srv.running.Done():
			return false
		}
	}
	opened := onLoop(func() {
		c.loop.conns[c] = struct{}{}
		c.open()
	})
	buf := make([]byte, tlsRead)
	for opened {
		n, err := w.tc.Read(buf)
		if n > 0 && !onLoop(func() { c.onData(buf[:n]) }) {
			return
		}
		if err != nil {
			onLoop(func() { c.onHangup(errors.Is(err, io.EOF)) })
			return
		}
	}
}

func (w *tlsTransport) send(p []byte) (int, error) {
	if !w.backlog.append(p) {
		w.backlog.start(p, tlsWriter{w.tc}, w.drained)
	}
	return len(p), nil
}

func (w *tlsTransport) pending() (int, bool) { return w.backlog.state() }

// finish sends the close alert from a goroutine, since it may block; it ends after lingerTimeout at the latest.
func (w *tlsTransport) finish() {
	go func() {
		_ = w.tc.SetWriteDeadline(time.Now().Add(lingerTimeout)) // on a dead socket the next call fails too
		_ = w.tc.CloseWrite()                                    // the peer may be gone already
	}()
}

func (w *tlsTransport) hangup(bool) error { return nil }

func (w *tlsTransport) peer() (state peerState) {
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

func (w *tlsTransport) pause() bool {
	w.paused = true
	return true
}

func (w *tlsTransport) resume(*conn) error {
	w.paused = false
	if w.held {
		w.held = false
		w.turn <- struct{}{} // does not block: the reader waits for it
	}
	return nil
}

// close closes the connection from a goroutine; crypto/tls gives up sending the alert after five seconds.
func (w *tlsTransport) close() {
	_ = w.resume(nil)                // lets the reader see the end; it cannot fail
	go func() { _ = w.tc.Close() }() // the peer may be gone already
}

// tlsWriter leaves the connection open when the backlog closes it.
type tlsWriter struct{ *tls.Conn }

// Close implements io.Closer.
func (tlsWriter) Close() error { return nil }
