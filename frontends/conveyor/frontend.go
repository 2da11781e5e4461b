package conveyor

import (
	"sync"
	"time"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/shared/resp"
)

// Options of the front-end.
type Options = frontends.Options

// Limits.
const (
	// defaultNamespace is the namespace of clients that choose none. Its queues have the names that other protocols
	// see.
	defaultNamespace = "conv"

	// leaseFor is the time without check-ins after which a worker loses its jobs. Workers check in every 15 seconds.
	leaseFor = time.Minute

	// maxFails is the default number of failures of a job, as in Conveyor's client.
	maxFails = 3
)

// Frontend makes sessions and holds their shared data other than jobs. A restart loses this data, which is harmless:
// workers check in again, and counters are only for charts.
type Frontend struct {
	broker   *access.Guard
	opts     Options
	messages resp.Hub
	server   resp.Server

	mu       sync.Mutex // guards the fields below
	checkIns checkIns
	counters counters
	closing  closingJobs
}

var _ frontends.Frontend = (*Frontend)(nil)

// New makes a front-end on a broker.
func New(b *access.Guard, o Options) *Frontend {
	f := &Frontend{broker: b, opts: o.WithDefaults(resp.DefaultBytes, resp.DefaultBytes)}
	f.checkIns.pool, f.counters.pool = access.NewPool(maxCheckIns), access.NewPool(maxCounters)
	f.server = resp.Server{Broker: b, Messages: &f.messages, Options: f.opts}
	return f
}

// Name implements frontends.Frontend.
func (f *Frontend) Name() string { return "conveyor" }

// Bounds implements frontends.Frontend. A reply to a large job is larger than the limit of clients that do not read.
func (f *Frontend) Bounds() frontends.Bounds {
	return frontends.Bounds{
		MaxInput:  f.opts.MaxBodyBytes + 2*resp.MaxCommandOverhead,
		MaxOutput: f.opts.MaxOutputBytes + f.opts.MaxBodyBytes,
	}
}

// Tick implements frontends.Frontend: it removes expired data.
func (f *Frontend) Tick(now core.Instant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counters.expire(now)
	f.closing.expire(now)
}

// Open implements frontends.Frontend.
func (f *Frontend) Open(c frontends.Conn) frontends.Session {
	s := &session{front: f}
	s.Open(&f.server, c, s)
	s.Subscriber.MayHear = s.mayHear
	return s
}

// Overflow is the refusal of a connection above the connection limit.
func (f *Frontend) Overflow() []byte { return []byte(resp.Overflow) }
