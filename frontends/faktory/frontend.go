package faktory

import (
	"crypto/rand"
	"encoding/binary"
	"sync/atomic"

	"github.com/tidwall/redcon"

	"broker/access"
	"broker/core"
	"broker/frontends"
)

// faktoryVersion is the Faktory version that INFO reports. Clients require at least 1.8.
const faktoryVersion = "1.10.0"

// description is the server's description in INFO. Published clients use batches, tracking and unique jobs only if they
// see this text.
const description = "Faktory Enterprise"

// defaultMaxLine fits the largest default body of the other protocols, with the JSON around it.
const defaultMaxLine = 72 << 20

// maxOutput limits the unsent output of a connection, in bytes. A single larger reply is allowed.
const maxOutput = 16 << 20

// Flush selects the jobs that FLUSH removes.
type Flush string

// FlushFaktory (the default): jobs from Faktory clients. FlushAll: all jobs. FlushOff: FLUSH is refused.
const (
	FlushFaktory Flush = "faktory"
	FlushAll     Flush = "all"
	FlushOff     Flush = "off"
)

// Options of the front-end. With the zero value, every client is admitted.
type Options struct {
	frontends.Options // MaxBodyBytes limits a request with jobs

	MaxConnections int // zero: no limit
	Flush          Flush
}

// Frontend opens sessions and holds their shared state.
type Frontend struct {
	broker    *access.Guard
	opts      Options
	startedAt core.Instant
	pipelines frontends.Pool[pipeline]

	connections atomic.Int64 // connections after a successful HELLO
	commands    atomic.Uint64
	stopping    atomic.Bool

	workers  registry
	remotes  remotes
	entered  entered
	logins   loginQueues
	detached detachedTasks
	bids     batchIDs
}

// New returns a front-end for b.
func New(b *access.Guard, o Options) *Frontend {
	o.Options = o.WithDefaults(defaultMaxLine, maxOutput)
	f := &Frontend{broker: b, opts: o, startedAt: b.Now()}
	f.workers.byID = make(map[string]*worker)
	f.logins.prompt.run = f.runPrompt
	f.logins.throttled.run, f.logins.throttled.limit = f.runThrottled, maxThrottled
	if o.Leader != nil {
		f.bids.reload = func() { f.bids.load(b) }
	}
	f.bids.load(b)
	return f
}

// Name implements frontends.Frontend.
func (f *Frontend) Name() string { return "faktory" }

// Bounds implements frontends.Frontend.
func (f *Frontend) Bounds() frontends.Bounds {
	return frontends.Bounds{
		MaxInput:  f.opts.MaxBodyBytes + 64<<10,
		MaxOutput: maxOutput,
		LoginFor:  handshakeFor,
	}
}

// Open implements frontends.Frontend. The server speaks first.
func (f *Frontend) Open(c frontends.Conn) frontends.Session {
	s := newSession(f, c)
	if f.opts.Password != "" || f.broker.Control().HasPasswords() {
		var r [12]byte
		_, _ = rand.Read(r[:]) // never fails
		s.challenge = newChallenge(binary.BigEndian.Uint64(r[:]), binary.BigEndian.Uint32(r[8:]))
	}
	s.put(s.challenge.appendGreeting(c.Out().Buf()), 0)
	return s
}

// Overflow is the output for a connection above the connection limit: a greeting and then an error. The client reads
// the error as the answer to its HELLO.
func (f *Frontend) Overflow() []byte {
	return redcon.AppendError(challenge{}.appendGreeting(nil), "ERR too many connections")
}

// Tick implements frontends.Frontend.
func (f *Frontend) Tick(now core.Instant) {
	if f.opts.Leader == nil {
		f.workers.reap(now)
	} else if n := f.commands.Swap(0); n > 0 {
		f.opts.Leader.Inform(frontends.ToJSON(&question{Do: askCounts, Commands: n}))
	}
	f.runDetached()
}

// Shutdown makes every connection answer its next request with an error and close.
func (f *Frontend) Shutdown() { f.stopping.Store(true) }
