package eventloop

import (
	"net"
	"os"
	"syscall"

	"github.com/panjf2000/gnet/v2"
)

// gnet reads whatever its loop is told of, and cannot be asked to leave a socket alone. A client that is to be held back
// is therefore taken from gnet, with a copy of the descriptor that nobody reads, and given to the same loop again.

// pause implements wire.
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
	gc.SetContext(nil)   // its end is none of the conn's
	_ = w.loop.Close(gc) // its errors are about a descriptor that is gone either way
	return true
}

// resume implements wire; attach is called on the loop when gnet has the socket.
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
		if err := tc.SetKeepAliveConfig(keepalive); err != nil { // FileConn has set another
			_ = nc.Close() // the connection is given up
			return err
		}
		if a, ok := tc.RemoteAddr().(*net.TCPAddr); ok {
			a.Zone = "" // see admit
		}
	}
	if nc.RemoteAddr() == nil { // reset meanwhile; gnet would ask for it
		_ = nc.Close() // the connection is given up
		return syscall.ENOTCONN
	}
	done, err := w.loop.Enroll(gnet.NewContext(c.srv.running, c), nc)
	if err != nil {
		_ = nc.Close() // the connection is given up
		return err
	}
	go func() { // ends when gnet has the socket or has failed to take it
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

// attach goes on with a socket that gnet reads again.
func (w *tcpTransport) attach(gc gnet.Conn) {
	if w.owned {
		_ = syscall.Close(w.fd) // a copy
	}
	w.gc, w.fd, w.owned = gc, gc.Fd(), false
}
