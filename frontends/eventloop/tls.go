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

// handshakeFor is how long a client may take to agree on keys.
const handshakeFor = 10 * time.Second

// tlsRead is the size of the read buffer of a TLS connection: one record.
const tlsRead = 16 << 10

func (s *Server) hasTLS() bool {
	for _, b := range s.bound {
		if b.TLS != nil {
			return true
		}
	}
	return false
}

// startTLSLoop makes a loop that a goroutine of ours runs; it ends with quit.
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

// addTLSConn gives a connection its reader, which ends when the socket is closed: by the peer, or by the conn.
func (s *Server) addTLSConn(nc net.Conn, b bound, c *conn) {
	config := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return b.TLS(), nil },
	}
	w := &tlsTransport{nc: nc, tc: tls.Server(nc, config), drained: c.Wake, turn: make(chan struct{}, 1)}
	c.transport = w
	c.loop = s.tlsLoops[int(s.tlsNext.Add(1))%len(s.tlsLoops)]
	if sc, ok := nc.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { c.fd = int(fd) }) // without a number it is listed as -1
		}
	}
	s.goroutines.Go(func() { w.read(c) })
}

// secured is a connection under TLS: a reader and, while there is something to write, a writer goroutine before the
// loop that drives the conn.
type tlsTransport struct {
	nc      net.Conn
	tc      *tls.Conn
	backlog backlog
	drained func()

	turn   chan struct{} // lets the reader go on
	paused bool          // on the loop: it does not
	held   bool          // and waits already
}

// read is the reader goroutine. It hands each piece to the loop and waits until it was taken.
func (w *tlsTransport) read(c *conn) {
	ctx, cancel := context.WithTimeout(c.srv.handshakes, handshakeFor)
	err := w.tc.HandshakeContext(ctx)
	cancel()
	if err != nil {
		c.srv.log.Debug().Err(err).Str("frontend", c.group.name).Str("remote", c.remoteText()).Msg("handshake failed")
		_ = w.nc.Close() // nothing was agreed on
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

// finish sends the alert from a goroutine, since that may wait for room; it ends after lingerTimeout at the latest.
func (w *tlsTransport) finish() {
	go func() {
		_ = w.tc.SetWriteDeadline(time.Now().Add(lingerTimeout)) // a dead socket fails at the next step
		_ = w.tc.CloseWrite()                                    // who does not listen does not hear it
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
	_ = raw.Control(func(fd uintptr) { state = peerOf(int(fd)) }) // a closed one is seen by the reader
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
		w.turn <- struct{}{} // has room: the reader waits
	}
	return nil
}

// close says goodbye from a goroutine, which crypto/tls ends after five seconds at the latest.
func (w *tlsTransport) close() {
	_ = w.resume(nil)                // the reader is to see the end; it cannot fail
	go func() { _ = w.tc.Close() }() // the peer may be gone already
}

// tlsWriter leaves the connection open when a backlog is written.
type tlsWriter struct{ *tls.Conn }

// Close implements io.Closer.
func (tlsWriter) Close() error { return nil }
