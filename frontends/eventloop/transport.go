package eventloop

import (
	"errors"
	"os"
	"syscall"

	"github.com/panjf2000/gnet/v2"
)

// transport moves the bytes of a conn. All methods are called on the conn's loop and do not block.
type transport interface {
	// send accepts all of p unless it fails: bytes that cannot be sent at once are copied and written later.
	send(p []byte) (taken int, err error)

	// pending reports how many bytes are not sent yet and whether writing has failed.
	pending() (bytes int, failed bool)

	// finish tells the peer that no more bytes will come; pending must be zero.
	finish()

	// hangup is called when the peer has closed its sending side. The socket is closed when hangup returns, unless keep
	// is true: then it must stay writable.
	hangup(keep bool) error

	// peer reports the state of the peer of a socket that is paused or half-closed.
	peer() peerState

	// pause stops reading, so that TCP flow control stops the peer, and reports whether it succeeded. resume follows a
	// successful pause.
	pause() bool
	resume(*conn) error

	// close closes the connection and discards unsent bytes.
	close()
}

// tcpTransport is a socket on one of gnet's loops, TCP or unix. gnet reads; writes go directly to the socket, because
// gnet discards its output buffer when the peer closes its sending side.
type tcpTransport struct {
	conn    *conn
	gc      gnet.Conn      // nil after hangup
	fd      int            // -1: closed
	owned   bool           // close must close fd
	loop    gnet.EventLoop // where a paused socket is resumed
	backlog backlog
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

// startBacklog starts the backlog. It writes to a duplicate of the descriptor, so that gnet may close its own one; the
// runtime waits until the duplicate is writable.
func (w *tcpTransport) startBacklog(p []byte) error {
	second := w.conn.secondSocket()
	if second == nil {
		return syscall.EMFILE
	}
	fd, err := dup(w.fd)
	if err != nil {
		second.Leave()
		return err
	}
	w.backlog.start(p, os.NewFile(uintptr(fd), "backlog"), func() { // on the backlog's goroutine when it ends
		second.Leave()
		w.conn.Wake()
	})
	return nil
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
		_ = gc.EventLoop().Close(gc) // its errors concern a descriptor that is closed either way
	case w.owned:
		_ = syscall.Close(w.fd)
		w.owned, w.fd = false, -1
	}
}

// dup duplicates a descriptor; the duplicate is closed in child processes.
func dup(fd int) (int, error) {
	n, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD_CLOEXEC, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}
