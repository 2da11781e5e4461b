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

// addTLSConn starts the reader of a connection. The reader ends when the peer or the conn closes the socket.
// Connections with the same configuration share its session ticket keys, so that clients can resume their sessions.
func (s *Server) addTLSConn(nc net.Conn, b bound, c *conn) {
	w := &tlsTransport{nc: nc, drained: c.Wake, goOn: make(chan struct{}, 1)}
	below := nc
	if w.records = newRecordConn(nc, &w.backlog, c.Wake); w.records != nil {
		below = w.records
	}
	w.tc = tls.Server(below, b.TLS())
	s.startTLS(w, c)
}

// startTLS starts the reader of a TLS connection.
func (s *Server) startTLS(w *tlsTransport, c *conn) {
	c.transport = w
	c.place.guest(func() { _ = w.nc.Close() }) // its reader sees the end
	c.loop = s.tlsLoops[int(s.tlsNext.Add(1))%len(s.tlsLoops)]
	if sc, ok := w.nc.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { c.fd = int(fd) }) // on failure it is listed as -1
		}
	}
	s.goroutines.Go(func() { w.read(c) })
}

// tlsTransport is a TLS connection. A reader goroutine waits for input and serves the conn with it, in the turn of the
// conn's loop.
type tlsTransport struct {
	nc net.Conn
	tc *tls.Conn
	// below tc; nil if tc existed before, as between nodes: then each send is written by the backlog's goroutine
	records *recordConn
	backlog backlog
	drained func()

	goOn   chan struct{} // lets a reader continue that waits
	paused bool          // the reader must not continue; used on the loop
	waits  bool          // the reader waits because of paused
}

// read is the reader goroutine.
func (w *tlsTransport) read(c *conn) {
	ctx, cancel := context.WithTimeout(c.srv.handshakes, handshakeFor)
	err := w.tc.HandshakeContext(ctx)
	cancel()
	if err != nil {
		c.srv.log.Debug().Err(err).Str("frontend", c.group.name).Str("remote",
			c.remoteText()).Msg("tls handshake failed")
		_ = w.nc.Close() // there is no TLS session to end
		c.release()
		return
	}
	if w.records != nil {
		w.records.connect()
	}
	opened := w.serve(c, func() {
		c.loop.conns[c] = struct{}{}
		c.open()
	})
	buf := make([]byte, tlsRead)
	for opened {
		n, err := w.tc.Read(buf)
		if n > 0 && !w.serve(c, func() { c.onData(buf[:n]) }) {
			return
		}
		if err != nil {
			w.serve(c, func() { c.onHangup(errors.Is(err, io.EOF)) })
			return
		}
	}
}

// serve calls f in a turn of the loop, and waits while the conn is paused. It returns false when the server has ended.
func (w *tlsTransport) serve(c *conn, f func()) bool {
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

func (w *tlsTransport) send(p []byte) (int, error) {
	if w.records == nil {
		if !w.backlog.append(p) {
			w.backlog.start(p, keptOpen{w.tc}, w.drained)
		}
		return len(p), nil
	}
	return w.sendRecords(p)
}

// sendRecords encrypts output piece by piece, so that only a small part of it can count as pending when it is written.
func (w *tlsTransport) sendRecords(p []byte) (taken int, err error) {
	if _, failed := w.records.pending(); failed {
		return 0, net.ErrClosed
	}
	w.records.collect()
	for rest := p; len(rest) > 0 && err == nil; {
		piece := rest[:min(len(rest), tlsRead)]
		rest = rest[len(piece):]
		if _, err = w.tc.Write(piece); err == nil {
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

func (w *tlsTransport) pending() (int, bool) {
	if w.records != nil {
		return w.records.pending()
	}
	return w.backlog.state()
}

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
	if w.waits {
		w.waits = false
		w.goOn <- struct{}{} // does not block: the reader waits for it
	}
	return nil
}

// close closes the connection from a goroutine; crypto/tls gives up sending the alert after five seconds.
func (w *tlsTransport) close() {
	_ = w.resume(nil)                // lets the reader see the end; it cannot fail
	go func() { _ = w.tc.Close() }() // the peer may be gone already
}
