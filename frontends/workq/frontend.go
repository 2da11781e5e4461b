package workq

import (
	"strings"

	"broker/access"
	"broker/core"
	"broker/frontends"
)

// Options of the front-end; zero values mean the defaults.
type Options struct {
	frontends.Options

	// Handles is the format of Gearman job handles, by which the flags -after and -parent may name jobs.
	Handles core.HandleFormat
}

// Limits.
const (
	defaultBodyBytes   = 1 << 20
	defaultOutputBytes = 16 << 20

	// lineBytes is the longest line, without the body.
	lineBytes = 10_000

	// maxSkip is the largest body that is skipped.
	maxSkip = 64 << 20

	// maxNames limits the different names in one lease. Each name may create a queue while the lease waits, so the
	// maximum takes some milliseconds under the core's lock. A session keeps a list of up to maxKeptNames for its next
	// lease.
	maxNames     = 16_384
	maxKeptNames = 1024

	// maxListed is the maximum number of jobs or queues in one reply to inspect.
	maxListed = 100
)

// Frontend makes Workq sessions.
type Frontend struct {
	broker    *access.Guard
	opts      Options
	pipelines frontends.Pool[pipeline]
}

var _ frontends.Frontend = (*Frontend)(nil)

// New makes a front-end on a broker.
func New(b *access.Guard, o Options) *Frontend {
	o.Options = o.WithDefaults(defaultBodyBytes, defaultOutputBytes)
	return &Frontend{broker: b, opts: o}
}

// Name implements frontends.Frontend.
func (f *Frontend) Name() string { return "workq" }

// Bounds implements frontends.Frontend. The unread input of a blocked connection has room for two commands of maximum
// size.
func (f *Frontend) Bounds() frontends.Bounds {
	return frontends.Bounds{MaxInput: 2 * f.maxCommand(), MaxOutput: f.opts.MaxOutputBytes}
}

// Tick implements frontends.Frontend. Workq has no periodic work.
func (f *Frontend) Tick(core.Instant) {}

// Open implements frontends.Frontend.
func (f *Frontend) Open(c frontends.Conn) frontends.Session {
	s := &session{front: f}
	s.Peer = frontends.NewPeer(f.broker, c)
	s.Init(s, &f.pipelines, maxPipeline)
	return s
}

// maxCommand is the longest command, with its body and line ends.
func (f *Frontend) maxCommand() int { return f.opts.MaxBodyBytes + lineBytes }

// name returns the name under which clients know a queue. ok is false for a queue outside their namespace.
func (f *Frontend) name(queue string) (name string, ok bool) {
	return strings.CutPrefix(queue, f.opts.Namespace)
}

// Overflow is the reply to a connection above the connection limit.
func (f *Frontend) Overflow() []byte { return []byte("-SERVER-ERROR too many connections\r\n") }
