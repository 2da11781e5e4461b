package eventloop

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
)

// idleRecords is the size of the buffer that an idle recordConn keeps.
const idleRecords = 4 << 10

// recordConn is the connection below a tls.Conn, or the one of a client without TLS. After the handshake its Write does
// not block: the socket takes as much as it can at once, and the backlog writes the rest. The records of one send are
// collected, so that they cost one system call.
type recordConn struct {
	net.Conn
	raw     syscall.RawConn
	backlog *backlog
	drained func() // called when the backlog is written
	input   input

	mu        sync.Mutex // guards the fields below; crypto/tls also writes while it reads
	connected bool       // the handshake is over
	collects  bool       // records wait for flush
	records   []byte     // neither written nor in the backlog
	total     uint64     // bytes of all records since the handshake
	pieces    []piece    // of output, in order, whose records may not be written
	unwritten int        // bytes of pieces together
	taken     int        // bytes of records that the last system calls took
	err       error      // of the last system call
	try       func(fd uintptr) bool
}

// piece is a piece of output that was encrypted.
type piece struct {
	end   uint64 // of its records, counted like total
	bytes int    // before encryption
}

// newRecordConn returns nil if nc has no socket.
func newRecordConn(nc net.Conn, b *backlog, drained func()) *recordConn {
	socket, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	r := &recordConn{Conn: nc, raw: raw, backlog: b, drained: drained}
	r.try = r.writeNow
	r.input.try, r.input.done = r.input.readNow, r.input.release
	return r
}

// receive waits for input without TLS. Only the time of its handling takes a buffer.
func (r *recordConn) receive() (p []byte, done func(), err error) {
	in := &r.input
	err = r.raw.Read(in.try)
	switch {
	case err != nil:
		return nil, in.done, err
	case in.err != nil:
		return nil, in.done, in.err
	case in.n == 0:
		return nil, in.done, io.EOF
	}
	return in.buf[:in.n], in.done, nil
}

// input is the last input of a connection. The reader's goroutine uses it.
type input struct {
	buf  *[plainRead]byte // nil: none is taken
	n    int
	err  error
	try  func(fd uintptr) bool // readNow and release; each value of a method takes memory
	done func()
}

// readNow reads what has come. It returns false if that is nothing.
func (in *input) readNow(fd uintptr) bool {
	in.buf = plainBuffers.Get().(*[plainRead]byte)
	for {
		in.n, in.err = syscall.Read(int(fd), in.buf[:])
		if !errors.Is(in.err, syscall.EINTR) {
			break
		}
	}
	if errors.Is(in.err, syscall.EAGAIN) {
		in.release()
		return false
	}
	return true
}

func (in *input) release() {
	if in.buf != nil {
		plainBuffers.Put(in.buf)
		in.buf = nil
	}
}

// connect ends the handshake, whose records are written at once.
func (r *recordConn) connect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.connected = true
}

// collect begins a send. add follows each piece of output that crypto/tls has encrypted, and flush ends the send.
func (r *recordConn) collect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.collects = true
}

func (r *recordConn) add(bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pieces = append(r.pieces, piece{end: r.total, bytes: bytes})
	r.unwritten += bytes
}

// flush returns how many bytes of output, from the end of the send, are given up because of an error.
func (r *recordConn) flush() (lost int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.collects = false
	if err = r.write(); err != nil {
		r.forgetWritten()
		// all are of this send: it would have been the backlog's otherwise
		lost, r.unwritten, r.pieces = r.unwritten, 0, nil
	}
	return lost, err
}

// maxOverhead limits the records in excess of twice their output. Above it pending reports the records, because a peer
// makes crypto/tls send messages of its own and does not read them.
const maxOverhead = 64 << 10

// pending is how many bytes of output are not written, before encryption. A piece counts until all of it is written.
func (r *recordConn) pending() (bytes int, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rest, failed := r.forgetWritten()
	if rest > 2*r.unwritten+maxOverhead {
		return rest, failed
	}
	return r.unwritten, failed
}

// forgetWritten forgets the pieces that are written. It returns the size of the backlog, and whether writing has
// failed.
func (r *recordConn) forgetWritten() (rest int, failed bool) {
	rest, failed = r.backlog.state()
	written := r.total - uint64(rest+len(r.records))
	done := 0
	for done < len(r.pieces) && r.pieces[done].end <= written {
		r.unwritten -= r.pieces[done].bytes
		done++
	}
	if done > 0 {
		r.pieces = r.pieces[:copy(r.pieces, r.pieces[done:])]
	}
	return rest, failed
}

// Write implements io.Writer. crypto/tls calls it with whole records.
func (r *recordConn) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.connected {
		return r.Conn.Write(p)
	}
	r.records = append(r.records, p...)
	r.total += uint64(len(p))
	if r.collects {
		return len(p), nil
	}
	return len(p), r.write()
}

// write gives the collected records to the socket or to the backlog. After an error, records has what was not written.
func (r *recordConn) write() error {
	if len(r.records) == 0 {
		return nil
	}
	if !r.backlog.append(r.records) {
		r.taken, r.err = 0, nil
		err := r.raw.Write(r.try)
		rest := r.records[r.taken:]
		if err == nil {
			err = r.err
		}
		switch {
		case err != nil:
			r.records = rest
			return err
		case len(rest) > 0:
			r.backlog.start(rest, keptOpen{r.Conn}, r.drained)
		}
	}
	if r.records = r.records[:0]; cap(r.records) > idleRecords {
		r.records = nil
	}
	return nil
}

// writeNow writes as many records as the socket takes at once. It returns true, since the caller must not wait for the
// socket.
func (r *recordConn) writeNow(fd uintptr) bool {
	for r.taken < len(r.records) {
		n, err := syscall.Write(int(fd), r.records[r.taken:])
		switch {
		case err == nil:
			r.taken += n
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return true
		default:
			r.err = err
			return true
		}
	}
	return true
}

// keptOpen is a connection that a backlog must not close.
type keptOpen struct{ net.Conn }

// Close implements io.Closer.
func (keptOpen) Close() error { return nil }
