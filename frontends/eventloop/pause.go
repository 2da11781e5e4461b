package eventloop

import (
	"net"
	"os"
	"syscall"

	"github.com/panjf2000/gnet/v2"
)

// gnet reads from a socket whenever it is readable; reading cannot be suspended. To pause a client, its connection is
// removed from gnet. A copy of the descriptor remains, which is not read. To resume, the copy is given to the same loop
// again.

// pause implements transport.
func (w *tcpTransport) pause() bool {
	if w.gc == nil {
		return false
	}
	fd, err := dup(w.fd)
	if err != nil {
		return false
	}
	gc := w.gc
	w.loop = gc.EventLoop()
	w.gc, w.fd, w.owned = nil, fd, true
	gc.SetContext(nil)   // OnClose must not end the conn
	_ = w.loop.Close(gc) // its errors concern a descriptor that is closed either way
	return true
}

// resume implements transport; attach is called on the loop when gnet has the socket.
func (w *tcpTransport) resume(c *conn) error {
	fd, err := dup(w.fd)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), "paused")
	nc, err := net.FileConn(file)
	_ = file.Close() // a copy
	if err != nil {
		return err
	}
	if tc, ok := nc.(*net.TCPConn); ok {
		if err := tc.SetKeepAliveConfig(keepalive); err != nil { // FileConn has set a different one
			_ = nc.Close() // the caller drops the connection
			return err
		}
		if a, ok := tc.RemoteAddr().(*net.TCPAddr); ok {
			a.Zone = "" // see addConn
		}
	}
	if nc.RemoteAddr() == nil { // reset in the meantime; gnet would use the address
		_ = nc.Close() // the caller drops the connection
		return syscall.ENOTCONN
	}
	done, err := w.loop.Enroll(gnet.NewContext(c.srv.running, c), nc)
	if err != nil {
		_ = nc.Close() // the caller drops the connection
		return err
	}
	go func() { // ends when gnet has taken the socket or failed to
		select {
		case r, answered := <-done:
			if !answered || r.Err != nil {
				c.Abort()
			}
		case <-c.srv.running.Done():
		}
	}()
	return nil
}

// attach continues with a socket that gnet reads again.
func (w *tcpTransport) attach(gc gnet.Conn) {
	if w.owned {
		_ = syscall.Close(w.fd) // a copy
	}
	w.gc, w.fd, w.owned = gc, gc.Fd(), false
}
