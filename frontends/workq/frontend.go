package workq

import (
	"strings"

	"broker/core"
	"broker/frontends"
)

// Options of the front-end; zero values mean the defaults.
type Options struct {
	// MaxBodyBytes bounds a payload or result. Default: 1 MiB.
	MaxBodyBytes int

	// MaxInputBytes bounds what may lie unread behind a blocked command. Default, and least: two commands of full size.
	MaxInputBytes int

	// MaxOutputBytes bounds what may wait for a client that does not read. Default: 16 MiB. One answer that is larger (an
	// inspect of a hundred jobs of full size) passes if nothing waits before it.
	MaxOutputBytes int

	// Namespace is put in front of every name that clients give, and taken off every name they see.
	Namespace string

	// Handles is the format of Gearman job handles, by which the flags -after and -parent may name jobs.
	Handles core.HandleFormat

	// Route rewrites queue and type at submission. It gets both as the client said them. A queue that it changes is the
	// core's own name, outside of the namespace. Nil: nothing is rewritten.
	Route func(queue, typ string) (string, string)
}

// Sizes that the protocol or good sense gives.
const (
	defaultBodyBytes   = 1 << 20
	defaultOutputBytes = 16 << 20

	// lineBytes is what a command may take beside a body of full size.
	lineBytes = 10_000

	// pauseAt is how much is written before the event loop is given a chance to send it.
	pauseAt = 256 << 10

	// maxSkip is the largest refused body that is waited for.
	maxSkip = 64 << 20

	// maxNames bounds the different names of one lease, each of which may become a queue for as long as it waits: some
	// milliseconds of the core's one lock. Of maxKeptNames names the list is kept for the next lease.
	maxNames     = 16_384
	maxKeptNames = 1024

	// listed is the most jobs or queues of one inspect.
	maxListed = 100
)

// Frontend makes Workq sessions.
type Frontend struct {
	broker    core.Broker
	opts      Options
	pipelines frontends.Pool[pipeline]
}

var _ frontends.Frontend = (*Frontend)(nil)

// New makes a front-end on a broker.
func New(b core.Broker, o Options) *Frontend {
	if o.MaxBodyBytes <= 0 {
		o.MaxBodyBytes = defaultBodyBytes
	}
	o.MaxInputBytes = max(o.MaxInputBytes, 2*(o.MaxBodyBytes+lineBytes))
	if o.MaxOutputBytes <= 0 {
		o.MaxOutputBytes = defaultOutputBytes
	}
	return &Frontend{broker: b, opts: o}
}

// Name implements frontends.Frontend.
func (f *Frontend) Name() string { return "workq" }

// Limits implements frontends.Frontend.
func (f *Frontend) Limits() frontends.Limits {
	return frontends.Limits{MaxInput: f.opts.MaxInputBytes, MaxOutput: f.opts.MaxOutputBytes}
}

// Tick implements frontends.Frontend: the protocol has nothing that goes by the clock of a connection.
func (f *Frontend) Tick(core.Instant) {}

// Open implements frontends.Frontend.
func (f *Frontend) Open(c frontends.Conn) frontends.Session {
	s := &Session{front: f, conn: c}
	s.client = f.open(c)
	return s
}

// open registers a client of the broker for a connection.
func (f *Frontend) open(c frontends.Conn) core.ClientID {
	return f.broker.Open(frontends.ClientOptions(core.Workq, c))
}

// maxCommand bounds a line with its body, line ends included.
func (f *Frontend) maxCommand() int { return f.opts.MaxBodyBytes + lineBytes }

// name is what clients call a queue; ok is false for one outside of their namespace.
func (f *Frontend) name(queue string) (name string, ok bool) {
	return strings.CutPrefix(queue, f.opts.Namespace)
}

// Overflow is what a connection is told that there is no room for.
func (f *Frontend) Overflow() []byte { return []byte("-SERVER-ERROR too many connections\r\n") }
