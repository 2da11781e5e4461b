package eventloop

import (
	"errors"
	"os"
	"syscall"

	"github.com/panjf2000/gnet/v2"
)

// wire is what carries a conn's bytes. All methods are called on the conn's loop and none blocks.
type transport interface {
	// send takes all of p, unless it fails: what cannot leave at once is copied and written later.
	send(p []byte) (taken int, err error)

	// pending reports how much of it has not left, and whether writing has failed.
	pending() (bytes int, failed bool)

	// finish tells the peer that no more will come; pending must be zero.
	finish()

	// hangup is told that the peer has closed its sending side and that the socket dies when hangup returns, unless
	// keep is true: then it must stay writable.
	hangup(keep bool) error

	// peer tells of the other end of a socket that is paused or has hung up.
	peer() peerState

	// pause stops reading, so that the peer is held back by its own socket, and reports whether it could. resume follows a
	// pause that could.
	pause() bool
	resume(*conn) error

	// close drops the connection, unsent bytes lost.
	close()
}

// plain is a socket on one of gnet's loops. gnet reads; writes go straight to the socket, because gnet throws away what
// it has buffered when the peer closes its sending side.
type tcpTransport struct {
	srv     *Server
	gc      gnet.Conn      // nil after hangup
	fd      int            // -1: closed
	owned   bool           // fd is ours to close
	loop    gnet.EventLoop // where a paused socket goes on
	backlog backlog
	wake    func() // any goroutine
}

func (w *tcpTransport) send(p []byte) (taken int, err error) {
	if w.backlog.append(p) {
		return len(p), nil
	}
	for taken < len(p) {
		n, err := syscall.Write(w.fd, p[taken:])
		switch {
		case err == nil:
			taken += n
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			if err := w.startBacklog(p[taken:]); err != nil {
				return taken, err
			}
			return len(p), nil
		default:
			return taken, err
		}
	}
	return taken, nil
}

// postpone starts the backlog. It writes to a descriptor of its own, so that it does not matter when gnet closes its
// one; the runtime waits on it for the socket to take more.
func (w *tcpTransport) startBacklog(p []byte) error {
	if !w.srv.takeSocket() {
		return syscall.EMFILE
	}
	fd, err := dup(w.fd)
	if err != nil {
		w.srv.sockets.Add(-1)
		return err
	}
	w.backlog.start(p, os.NewFile(uintptr(fd), "backlog"), w.drained)
	return nil
}

// drained is called by the backlog's goroutine at its end.
func (w *tcpTransport) drained() {
	w.srv.sockets.Add(-1)
	w.wake()
}

func (w *tcpTransport) pending() (int, bool) { return w.backlog.state() }

func (w *tcpTransport) finish() { _ = syscall.Shutdown(w.fd, syscall.SHUT_WR) } // the peer may be gone already

func (w *tcpTransport) hangup(keep bool) error {
	w.gc = nil
	if !keep {
		w.fd = -1
		return nil
	}
	fd, err := dup(w.fd)
	if err != nil {
		w.fd = -1
		return err
	}
	w.fd, w.owned = fd, true
	return nil
}

func (w *tcpTransport) peer() peerState { return peerOf(w.fd) }

func (w *tcpTransport) close() {
	w.backlog.abort()
	switch {
	case w.gc != nil:
		gc := w.gc
		w.gc, w.fd = nil, -1
		_ = gc.EventLoop().Close(gc) // its errors are about a descriptor that is gone either way
	case w.owned:
		_ = syscall.Close(w.fd)
		w.owned, w.fd = false, -1
	}
}

// dup copies a descriptor; the copy is closed in child processes.
func dup(fd int) (int, error) {
	n, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD_CLOEXEC, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}
