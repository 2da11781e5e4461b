package eventloop

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/panjf2000/gnet/v2"
	"github.com/rs/zerolog"
)

// handler implements gnet's callbacks. gnet calls each method on the connection's loop.
type handler struct {
	gnet.BuiltinEventEngine
	srv *Server
}

// OnOpen implements gnet.EventHandler.
func (h *handler) OnOpen(gc gnet.Conn) ([]byte, gnet.Action) {
	c := gc.Context().(*conn)
	if w, paused := c.transport.(*tcpTransport); paused {
		if c.phase != gone {
			w.attach(gc)
		}
		return nil, action(c)
	}
	c.loop = h.srv.loopOf(gc.EventLoop())
	c.fd = gc.Fd()
	c.transport = &tcpTransport{conn: c, gc: gc, fd: c.fd}
	c.loop.conns[c] = struct{}{}
	c.open()
	return nil, action(c)
}

// OnTraffic implements gnet.EventHandler.
func (h *handler) OnTraffic(gc gnet.Conn) gnet.Action {
	c := gc.Context().(*conn)
	p, err := gc.Next(-1) // everything; gnet buffers nothing because no bytes are left unread
	if err != nil {
		return gnet.Close
	}
	l := c.loop
	l.enter()
	c.onData(p)
	l.exit()
	if w, ok := c.transport.(*tcpTransport); ok && w.gc != gc {
		return gnet.Close // paused or dropped: gnet must close its side
	}
	return gnet.None
}

// OnClose implements gnet.EventHandler. gnet closes the socket when it returns.
func (h *handler) OnClose(gc gnet.Conn, err error) gnet.Action {
	if c, ok := gc.Context().(*conn); ok && c.transport != nil && c.phase != gone {
		c.onHangup(errors.Is(err, io.EOF))
	}
	return gnet.None
}

func action(c *conn) gnet.Action {
	if c.phase == gone {
		return gnet.Close
	}
	return gnet.None
}

// loopOf returns the loop that belongs to one of gnet's event loops.
func (s *Server) loopOf(el gnet.EventLoop) *loop {
	s.loopMu.Lock()
	defer s.loopMu.Unlock()
	l := s.byGnet[el]
	if l == nil {
		l = newLoop()
		run := gnet.RunnableFunc(func(context.Context) error { l.run(); return nil })
		runLater := gnet.RunnableFunc(func(context.Context) error { l.runLater(); return nil })
		execute := func(r gnet.Runnable) {
			_ = el.Execute(context.Background(), r) // fails only when the loop and all its conns have ended
		}
		l.schedule = func() { execute(run) }
		// gnet runs up to 256 scheduled functions before it returns to the sockets. A goroutine schedules this one, so
		// that gnet sees it after it has polled.
		l.scheduleLater = func() { go execute(runLater) } // ends at once
		s.byGnet[el] = l
		s.loops = append(s.loops, l)
	}
	return l
}

// netLog writes gnet's log messages. Its errors concern a single connection or the end of its loops.
type netLog struct{ log zerolog.Logger }

// Debugf implements gnet's Logger.
func (n netLog) Debugf(string, ...any) {}

// Infof implements gnet's Logger.
func (n netLog) Infof(format string, args ...any) { n.write(zerolog.DebugLevel, format, args) }

// Warnf implements gnet's Logger.
func (n netLog) Warnf(format string, args ...any) { n.write(zerolog.DebugLevel, format, args) }

// Errorf implements gnet's Logger.
func (n netLog) Errorf(format string, args ...any) { n.write(zerolog.WarnLevel, format, args) }

// Fatalf implements gnet's Logger.
func (n netLog) Fatalf(format string, args ...any) { n.write(zerolog.ErrorLevel, format, args) }

func (n netLog) write(level zerolog.Level, format string, args []any) {
	n.log.WithLevel(level).Str("detail", fmt.Sprintf(format, args...)).Msg("network library")
}
