package faktory

import (
	"crypto/rand"
	"encoding/binary"
	"sync/atomic"

	"github.com/tidwall/redcon"

	"broker/core"
	"broker/frontends"
)

// Version of the Faktory server whose behaviour this is; clients ask for at least 1.8.
const Version = "1.10.0"

// Description is what INFO says by default: the words by which published clients know that batches, tracking and unique
// jobs may be used.
const Description = "Faktory Enterprise"

// DefaultMaxLine lets through any job that a worker of another protocol could be handed, and its JSON around it.
const DefaultMaxLine = 72 << 20

// What may wait for a reader, in bytes. A session stops reading requests at the first, so that it hardly ever comes to
// the second; one reply that is larger by itself is the event loop's to let through.
const (
	enoughOutput = 256 << 10
	maxOutput    = 16 << 20
)

// Flush says what FLUSH may remove.
type Flush string

// FlushFaktory, also meant by an empty value: the jobs that Faktory clients submitted. FlushAll: every job.
const (
	FlushFaktory Flush = "faktory"
	FlushAll     Flush = "all"
	FlushOff     Flush = "off"
)

// Options of the front-end. The zero value serves anybody who can connect.
type Options struct {
	Password       string // empty: none is asked for
	MaxLine        int    // bytes of one request; zero: DefaultMaxLine
	MaxConnections int    // zero: no limit of ours
	Namespace      string // prefix of the core's queues that clients never see
	Flush          Flush
	Description    string // zero: Description

	// Route renames a job's queue and type at submission. The names it gets are the client's; a queue that it changes
	// is taken as the core's own, outside the name space. nil: nothing is renamed.
	Route func(queue, jobtype string) (string, string)
}

// Frontend makes sessions and knows what they share: the workers and the counters.
type Frontend struct {
	b         core.Broker
	o         Options
	startedAt core.Instant
	pipelines frontends.Pool[pipeline]

	connections atomic.Int64 // that have shaken hands
	commands    atomic.Uint64
	stopping    atomic.Bool

	workers  registry
	detached detachedTasks
	bids     batchIDs
}

// New makes the front-end. It does nothing until Open is called.
func New(b core.Broker, o Options) *Frontend {
	if o.MaxLine <= 0 {
		o.MaxLine = DefaultMaxLine
	}
	if o.Description == "" {
		o.Description = Description
	}
	f := &Frontend{b: b, o: o, startedAt: b.Now()}
	f.workers.byID = make(map[string]*worker)
	f.bids.load(b)
	return f
}

// Name implements frontends.Frontend.
func (f *Frontend) Name() string { return "faktory" }

// Limits implements frontends.Frontend.
func (f *Frontend) Limits() frontends.Limits {
	return frontends.Limits{
		MaxInput:  f.o.MaxLine + 64<<10,
		MaxOutput: maxOutput,
	}
}

// Open implements frontends.Frontend: the server speaks first.
func (f *Frontend) Open(c frontends.Conn) frontends.Session {
	s := &session{f: f, conn: c, lines: lineReader{max: maxHelloBytes}}
	if f.o.Password != "" {
		var r [12]byte
		_, _ = rand.Read(r[:]) // never fails
		s.challenge = newChallenge(binary.BigEndian.Uint64(r[:]), binary.BigEndian.Uint32(r[8:]))
	}
	s.put(s.challenge.appendGreeting(c.Out().Buf()), 0)
	f.workers.expectHello(s, f.b.Now())
	return s
}

// Overflow is what a connection is told that the event loop has no room for: a greeting, so that clients get as far as
// reading the answer to their HELLO, and that answer.
func (f *Frontend) Overflow() []byte {
	return redcon.AppendError(challenge{}.appendGreeting(nil), "ERR too many connections")
}

// Tick implements frontends.Frontend.
func (f *Frontend) Tick(now core.Instant) {
	f.workers.reap(now)
	f.runDetached()
}

// Shutdown makes every connection's next request the last: it is refused and the connection closed.
func (f *Frontend) Shutdown() { f.stopping.Store(true) }
