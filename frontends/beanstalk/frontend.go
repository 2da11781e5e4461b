package beanstalk

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"strings"
	"sync/atomic"

	"broker/access"
	"broker/core"
	"broker/frontends"
)

// Options of the front-end; zero values mean the defaults.
type Options struct {
	frontends.Options

	Version string // of the broker, for stats
}

// Limits.
const (
	defaultBodyBytes   = 65_535
	defaultOutputBytes = 16 << 20

	// maxWatched limits the watched tubes of one connection. Each is a queue while it is watched. Each reserve checks
	// all of them.
	maxWatched = 1_024
)

// defaultTube is the tube that new connections use and watch.
const defaultTube = "default"

// Frontend makes sessions.
type Frontend struct {
	broker    *access.Guard
	opts      Options
	pipelines frontends.Pool[pipeline]
	tubes     tubes
	id        string
	host      string

	commands    [verbs]atomic.Uint64
	connections atomic.Int64
	producers   atomic.Int64
	workers     atomic.Int64
	waiting     atomic.Int64
	opened      atomic.Uint64
}

var _ frontends.Frontend = (*Frontend)(nil)

// serverVersion is the version of beanstalkd that the front-end stands in for. Clients decide by it which commands they
// may use.
const serverVersion = "1.12"

// New makes a front-end on a broker.
func New(b *access.Guard, o Options) *Frontend {
	o.Options = o.WithDefaults(defaultBodyBytes, defaultOutputBytes)
	f := &Frontend{broker: b, opts: o, tubes: tubes{byName: make(map[string]tube)}}
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	f.id = "b" + hex.EncodeToString(id)[1:]
	f.host, _ = os.Hostname() // empty: unknown
	return f
}

// Name implements frontends.Frontend.
func (f *Frontend) Name() string { return "beanstalk" }

// Bounds implements frontends.Frontend.
func (f *Frontend) Bounds() frontends.Bounds {
	return frontends.Bounds{MaxInput: 2 * (f.opts.MaxBodyBytes + maxLine), MaxOutput: f.opts.MaxOutputBytes}
}

// Tick implements frontends.Frontend. beanstalkd has no periodic work.
func (f *Frontend) Tick(core.Instant) {}

// Open implements frontends.Frontend.
func (f *Frontend) Open(c frontends.Conn) frontends.Session {
	f.connections.Add(1)
	f.opened.Add(1)
	s := &session{front: f, used: defaultTube, watched: []string{defaultTube}}
	s.Peer = frontends.NewPeer(f.broker, c)
	s.Init(s, &f.pipelines, maxPipeline)
	s.hold(defaultTube) // as used
	s.hold(defaultTube) // as watched
	f.tubes.change(defaultTube, func(t *tube) { t.using, t.watching = t.using+1, t.watching+1 })
	return s
}

// queue is the name of a tube in the core.
func (f *Frontend) queue(tube string) string { return f.opts.Namespace + tube }

// tube is the name of a queue for clients. ok is false for a queue outside their namespace, or with a name that is not
// valid for tubes.
func (f *Frontend) tube(queue string) (name string, ok bool) {
	name, ok = strings.CutPrefix(queue, f.opts.Namespace)
	return name, ok && validName([]byte(name))
}

// Overflow is the refusal of a connection above the connection limit.
func (f *Frontend) Overflow() []byte { return []byte(outOfMemory) }
