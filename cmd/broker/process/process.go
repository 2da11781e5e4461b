package process

import (
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"broker/access"
	"broker/config"
	"broker/core/clock"
	"broker/frontends/eventloop"
	"broker/operate/hostile"
	"broker/operate/httpapi"
)

// Shutdown is a request to stop.
type Shutdown struct {
	Graceful bool
	Cause    error // the program exits with this error
}

// Process holds the parts of the running program, grouped by lifetime: the launch never changes, a reload replaces the
// settings, the ports are bound once, and a term begins with an open store.
type Process struct {
	Launch
	settings
	ports

	log           zerolog.Logger
	shutdowns     chan Shutdown // capacity 1: the first request counts
	drainRequests chan bool
	cluster       *clusterNode // nil: the broker is not a node of a cluster
}

// Launch holds the parameters from a command line. The zero values are for serve without systemd.
type Launch struct {
	Version string                   // of this build
	Clock   clock.Monotonic          // nil: the system's
	Sockets Activated                // listening sockets that systemd passed
	Reread  func() (Settings, error) // reads the settings again; nil: all of them come from the command line

	Daemon             bool             // a process in the background, whose id systemd does not know
	RefuseOnly         bool             // draining refuses new jobs but still hands out existing jobs
	Verbosity          string           // reply to gearmand's text command verbose
	ClientCertOptional bool             // with tls_client_ca, clients without a certificate are accepted too
	GearmanHTTP        config.Addresses // of gearmand's HTTP protocol
	OnBound            func() error     // called once the addresses are bound, before anything else is touched
	OnReady            func() error     // called once clients are served
	Faults             *hostile.Options // of broker test; nil: clients meet no faults
}

// settings are the parts that a reload replaces, in the process and in its term.
type settings struct {
	reloads      sync.Mutex // guards all that follows once reloads are allowed
	serving      bool       // reloads are allowed
	requested    bool       // a reload was requested too early
	revision     int        // counts the reloads
	config       Settings
	certificates []*certificates
	term         *term     // nil: the store is not open, or another node of the cluster leads
	sessions     *sessions // nil: this node has never been linked to a leader
	access       *access.Control
}

// ports are the sockets, and the servers that must answer before the store is open.
type ports struct {
	retryUntil    time.Time                 // deadline of bind_retry
	denied        map[string]*denialCounter // by front-end
	server        *eventloop.Server         // the front-ends' sockets
	httpListeners []net.Listener
	http          *http.Server
	api           *httpapi.Server
}

// New makes a process that has not bound a port yet.
func New(c *Settings, log zerolog.Logger, l Launch) *Process {
	return &Process{
		Launch: l, settings: settings{config: *c, access: &access.Control{}}, log: log,
		shutdowns: make(chan Shutdown, 1), drainRequests: make(chan bool, 4),
	}
}

// RequestShutdown requests a shutdown. Any goroutine may call it.
func (p *Process) RequestShutdown(e Shutdown) {
	select {
	case p.shutdowns <- e:
	default:
	}
}

// WatchSignals calls the function of each signal, on a goroutine that ends with the program.
func (p *Process) WatchSignals(actions map[os.Signal]func()) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, slices.Collect(maps.Keys(actions))...)
	go func() {
		for s := range signals {
			p.log.Info().Stringer("signal", s).Msg("signal received")
			actions[s]()
		}
	}()
}

// RequestDrain stops or resumes handing out jobs; before clients are served, the request waits. Any goroutine may call
// it.
func (p *Process) RequestDrain(on bool) {
	select {
	case p.drainRequests <- on:
	default: // several requests are already waiting
	}
}
