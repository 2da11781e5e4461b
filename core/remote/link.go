package remote

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"broker/core/notify"
)

// Format is the number of the format of all messages. A node that speaks another one is not spoken to.
const Format = 2

// Bounds of a link. It is closed when nothing comes, or nothing can be written, for stallAfter.
const (
	beatEvery  = time.Second
	stallBeats = 6
	stallAfter = stallBeats * beatEvery

	// maxBuffered is how many bytes wait to be written, beside one message: above it nobody adds more.
	maxBuffered = 32 << 20

	maxMessage  = 1 << 30 // bytes
	readPiece   = 1 << 20 // how much of a message is allocated before it has come
	writePiece  = 256 << 10
	keptBuffer  = 1 << 20  // the largest buffer that is kept for later messages
	socketBytes = 64 << 10 // read at once
)

// Messages, each behind its length as a uvarint.
const (
	msgCommit     = iota + 1 // leader: all that is written with it depends on no later commit than this
	msgOpen                  // follower: a client
	msgClose                 // follower
	msgDo                    // follower: operations of a client
	msgTook                  // follower: the client has fetched what was pushed
	msgTell                  // follower: bytes for Server's owner
	msgBeat                  // follower: the time of its own clock
	msgDone                  // leader: replies to msgDo
	msgPush                  // leader: replies that nobody asked for now; or none: a commit is done
	msgDisconnect            // leader: the connection of the client must end
	msgTime                  // leader: the time of msgBeat, and that of its broker
	msgBye                   // leader: it has told all that it will tell
	msgAsk                   // follower: a question to Server's owner
	msgAnswer                // leader: the answer to msgAsk
	msgSay                   // leader: bytes for Broker's owner
	msgHistory               // leader: which changes of earlier leaders it has; its first message
	msgLater                 // follower: msgDo, but only once all nodes have registered their clients
	msgRegistered            // follower: it has registered its clients
	msgServe                 // leader: it takes operations; what was msgLater is answered
	msgWait                  // follower: msgDo; jobs in the answer are as if they were pushed
)

var (
	errSilent  = errors.New("the other node says nothing")
	errStalled = errors.New("the other node takes nothing")
	errClosed  = errors.New("the link was closed")
)

// link is one end of a connection between two nodes. Whoever flushes writes what all have added.
type link struct {
	conn net.Conn
	head int // bytes in front of each write, which fill sets
	fill func(head []byte)

	mu     sync.Mutex // guards the fields below
	room   *sync.Cond // out has become short, or err is set
	out    []byte     // to be written, behind the head
	err    error      // why the link has ended; nil: it lives
	ended  chan struct{}
	writes notify.Signal

	writing sync.Mutex // held while something is written; guards spare
	spare   []byte     // the next out

	buffered atomic.Int64  // bytes that wait, are being written, or have room
	heard    atomic.Uint64 // counts reads of the connection
	written  atomic.Uint64 // counts writes to it
}

func newLink(conn net.Conn, head int, fill func([]byte)) *link {
	l := &link{conn: conn, head: head, fill: fill, ended: make(chan struct{}), writes: notify.NewSignal()}
	l.room = sync.NewCond(&l.mu)
	return l
}

// end ends the link; the first reason counts.
func (l *link) end(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	l.err = why
	_ = l.conn.Close() // nothing more is expected from it
	close(l.ended)
	l.room.Broadcast()
}

// reason is why the link has ended; nil: it lives.
func (l *link) reason() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// send adds a message that is written soon. It does not wait.
func (l *link) send(kind byte, say []byte) {
	l.add(kind, say)
	l.writes.Set()
}

// add adds a message, its kind and what it says, for the next flush.
func (l *link) add(kind byte, say []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	if len(l.out) == 0 {
		l.out = append(l.out, make([]byte, l.head)...)
	}
	before := len(l.out)
	l.out = binary.AppendUvarint(l.out, uint64(len(say))+1)
	l.out = append(append(l.out, kind), say...)
	l.buffered.Add(int64(len(l.out) - before))
}

// touch makes the next flush write even if nothing was added: its head says enough.
func (l *link) touch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil && len(l.out) == 0 {
		l.out = append(l.out, make([]byte, l.head)...)
	}
}

// takeRoom waits until a message of n bytes may be added, or the link has ended. The room is the caller's until it has
// added the message and gives it back: otherwise all that wait would add theirs at once.
func (l *link) takeRoom(n int64) {
	if l.hasTaken(n) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.hasTaken(n) {
		if l.err != nil {
			l.buffered.Add(n)
			return
		}
		l.room.Wait()
	}
}

func (l *link) hasTaken(n int64) bool {
	for {
		now := l.buffered.Load()
		if now > maxBuffered {
			return false
		}
		if l.buffered.CompareAndSwap(now, now+n) {
			return true
		}
	}
}

// giveRoom gives back what takeRoom took.
func (l *link) giveRoom(n int64) {
	if now := l.buffered.Add(-n); now <= maxBuffered && now+n > maxBuffered {
		l.mu.Lock()
		l.room.Broadcast()
		l.mu.Unlock()
	}
}

// write is the goroutine that writes what was sent. It ends with the link.
func (l *link) write() {
	for {
		select {
		case <-l.writes:
			runtime.Gosched() // those that are about to add a message do so first: many go with one write
			l.flush()
		case <-l.ended:
			return
		}
	}
}

// flush writes all that was added.
func (l *link) flush() {
	l.writing.Lock()
	defer l.writing.Unlock()
	for {
		l.mu.Lock()
		p := l.out
		if len(p) == 0 || l.err != nil {
			l.mu.Unlock()
			return
		}
		l.out = l.spare[:0]
		l.mu.Unlock()
		l.fill(p[:l.head])
		if err := l.writeAll(p); err != nil {
			l.end(err)
			return
		}
		if l.buffered.Add(int64(l.head-len(p))) <= maxBuffered {
			l.mu.Lock()
			l.room.Broadcast()
			l.mu.Unlock()
		}
		if l.spare = p; cap(p) > keptBuffer {
			l.spare = nil
		}
	}
}

// writeAll writes piece by piece, so that progress is seen.
func (l *link) writeAll(p []byte) error {
	for len(p) > 0 {
		n, err := l.conn.Write(p[:min(len(p), writePiece)])
		if err != nil {
			return err
		}
		l.written.Add(1)
		p = p[n:]
	}
	return nil
}

// Read implements io.Reader.
func (l *link) Read(p []byte) (int, error) {
	n, err := l.conn.Read(p)
	l.heard.Add(1)
	return n, err
}

// beat calls each once a second until the link ends, and ends it if it has stalled.
func (l *link) beat(each func()) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	heard, written := l.heard.Load(), l.written.Load()
	silent, stalled := 0, 0
	for {
		select {
		case <-tick.C:
		case <-l.ended:
			return
		}
		each()
		h, w := l.heard.Load(), l.written.Load()
		if silent++; h != heard {
			heard, silent = h, 0
		}
		if stalled++; w != written || l.buffered.Load() == 0 {
			written, stalled = w, 0
		}
		switch {
		case silent >= stallBeats:
			l.end(errSilent)
		case stalled >= stallBeats:
			l.end(errStalled)
		}
	}
}

// reader reads messages.
type reader struct {
	in      *bufio.Reader
	scratch []byte
}

func newReader(conn io.Reader) *reader { return &reader{in: bufio.NewReaderSize(conn, socketBytes)} }

// isReady reports that the next message has come as a whole.
func (r *reader) isReady() bool {
	b, _ := r.in.Peek(min(r.in.Buffered(), binary.MaxVarintLen64)) // they are there
	size, n := binary.Uvarint(b)
	return n > 0 && uint64(r.in.Buffered()-n) >= size
}

// next reads a message. With owned, its bytes belong to the caller; else they are valid until the next call.
func (r *reader) next(owned func(kind byte) bool) (kind byte, say []byte, err error) {
	size, err := binary.ReadUvarint(r.in)
	if err != nil {
		return 0, nil, err
	}
	if size == 0 || size > maxMessage {
		return 0, nil, errMalformed
	}
	if kind, err = r.in.ReadByte(); err != nil {
		return 0, nil, err
	}
	into := r.scratch[:0]
	if owned(kind) {
		into = nil
	}
	say, err = readBytes(r.in, into, int(size)-1)
	if !owned(kind) && cap(say) <= keptBuffer {
		r.scratch = say
	}
	return kind, say, err
}

// readBytes reads n bytes, whose memory is taken as they come: a length may lie.
func readBytes(in io.Reader, into []byte, n int) ([]byte, error) {
	for len(into) < n {
		from, piece := len(into), min(n-len(into), max(readPiece, len(into)))
		if cap(into) < from+piece {
			grown := make([]byte, from, from+piece)
			copy(grown, into)
			into = grown
		}
		into = into[:from+piece]
		if _, err := io.ReadFull(in, into[from:]); err != nil {
			return nil, err
		}
	}
	return into, nil
}

// hello is what each side says first: that it speaks operations, and its format. Both add a note.
const helloMagic = "broker operations\n"

func writeHello(conn net.Conn, note []byte) error {
	b := append([]byte(helloMagic), 0, 0, 0, 0, 0, 0, 0, 0)
	binary.BigEndian.PutUint32(b[len(helloMagic):], Format)
	binary.BigEndian.PutUint32(b[len(helloMagic)+4:], uint32(len(note)))
	_, err := conn.Write(append(b, note...))
	return err
}

// FormatError says that the other node speaks another format, or none.
type FormatError struct{ Format uint32 }

func (e *FormatError) Error() string {
	return fmt.Sprintf("the other node speaks format %d of operations, this one %d", e.Format, Format)
}

// maxNote is the longest note, in bytes.
const maxNote = 64 << 10

func readHello(conn net.Conn) (note []byte, err error) {
	head := make([]byte, len(helloMagic)+8)
	if _, err := io.ReadFull(conn, head); err != nil {
		return nil, fmt.Errorf("no hello: %w", err)
	}
	format := binary.BigEndian.Uint32(head[len(helloMagic):])
	size := binary.BigEndian.Uint32(head[len(helloMagic)+4:])
	switch {
	case string(head[:len(helloMagic)]) != helloMagic || size > maxNote:
		return nil, errMalformed
	case format != Format:
		return nil, &FormatError{format}
	}
	note = make([]byte, size)
	_, err = io.ReadFull(conn, note)
	return note, err
}
