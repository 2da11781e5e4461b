package conveyor

import (
	"sync"
	"time"

	"broker/core"
	"broker/frontends"
	"broker/frontends/access"
	"broker/frontends/resp"
)

// Options of the front-end; zero values mean the defaults.
type Options struct {
	// Password that clients give with AUTH. Empty: none is required.
	Password string

	// MaxBodyBytes limits an argument, and so a job with its payload. Default: 16 MiB.
	MaxBodyBytes int

	// MaxOutputBytes limits the unsent output of a connection. Default: 16 MiB; a single larger reply is allowed.
	MaxOutputBytes int

	// Namespace is the prefix of all queues of this front-end. Clients do not see it.
	Namespace string

	// Access finds principals by the tokens that clients give with AUTH. Nil: there are none.
	Access *access.Control

	// Audit is called after each change by an operator. May be nil.
	Audit access.Audit

	// Route changes queue and type at submission. A queue that it changes is outside the namespace. Nil: no change.
	Route func(queue, typ string) (string, string)
}

// Limits.
const (
	defaultBodyBytes   = 16 << 20
	defaultOutputBytes = 16 << 20

	// defaultNamespace is the namespace of clients that choose none. Its queues have the names that other protocols see.
	defaultNamespace = "conv"

	// leaseFor is the time without check-ins after which a worker loses its jobs. Workers check in every 15 seconds.
	leaseFor = time.Minute

	// maxFails is the default number of failures of a job, as in Conveyor's client.
	maxFails = 3
)

// Frontend makes sessions and holds their shared data other than jobs. A restart loses this data, which is harmless: workers
// check in again, and counters are only for charts.
type Frontend struct {
	broker   core.Broker
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
func New(b core.Broker, o Options) *Frontend {
	if o.MaxBodyBytes <= 0 {
		o.MaxBodyBytes = defaultBodyBytes
	}
	if o.MaxOutputBytes <= 0 {
		o.MaxOutputBytes = defaultOutputBytes
	}
	f := &Frontend{broker: b, opts: o}
	f.server = resp.Server{
		Broker: b, Protocol: core.Conveyor, Messages: &f.messages, MaxBodyBytes: o.MaxBodyBytes, Password: o.Password, Access: o.Access,
	}
	return f
}

// Name implements frontends.Frontend.
func (f *Frontend) Name() string { return "conveyor" }

// Limits implements frontends.Frontend. A reply to a large job is larger than the limit of clients that do not read.
func (f *Frontend) Limits() frontends.Limits {
	return frontends.Limits{
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
	return &session{Connection: f.server.Open(c), front: f}
}

// Overflow is the refusal of a connection above the connection limit.
func (f *Frontend) Overflow() []byte { return []byte(resp.Overflow) }
