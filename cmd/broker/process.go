package main

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
	"broker/frontends/eventloop"
	"broker/operate/hostile"
	"broker/operate/httpapi"
)

// shutdown is a request to stop.
type shutdown struct {
	graceful bool
	cause    error // the program exits with this error
}

// process holds the parts of the running program, grouped by lifetime: the launch never changes, a reload replaces the
// settings, the ports are bound once, and a term begins with an open store.
type process struct {
	launch
	settings
	ports

	log           zerolog.Logger
	shutdowns     chan shutdown // capacity 1: the first request counts
	drainRequests chan bool
	cluster       *clusterNode // nil: the broker is not a node of a cluster
}

// launch holds the parameters from a command line. The zero values are for serve without systemd.
type launch struct {
	sockets activated                     // listening sockets that systemd passed
	reread  func() (config.Config, error) // reads the settings again; nil: all of them come from the command line

	refuseOnly         bool             // draining refuses new jobs but still hands out existing jobs
	verbosity          string           // reply to gearmand's text command verbose
	clientCertOptional bool             // with tls_client_ca, clients without a certificate are accepted too
	gearmanHTTP        string           // address of gearmand's HTTP protocol; empty: it is not served
	onBound            func() error     // called once the addresses are bound, before anything else is touched
	onReady            func() error     // called once clients are served
	faults             *hostile.Options // of broker test; nil: clients meet no faults
}

// settings are the parts that a reload replaces, in the process and in its term.
type settings struct {
	reloads      sync.Mutex // guards all that follows once reloads are allowed
	serving      bool       // reloads are allowed
	requested    bool       // a reload was requested too early
	revision     int        // counts the reloads
	config       config.Config
	certificates []*certificates
	term         *term     // nil: the store is not open, or another node of the cluster leads
	sessions     *sessions // nil: this node is not linked to a leader
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

func newProcess(c *config.Config, log zerolog.Logger, l launch) *process {
	return &process{
		launch: l, settings: settings{config: *c, access: &access.Control{}}, log: log,
		shutdowns: make(chan shutdown, 1), drainRequests: make(chan bool, 4),
	}
}

// requestShutdown requests a shutdown. Any goroutine may call it.
func (p *process) requestShutdown(e shutdown) {
	select {
	case p.shutdowns <- e:
	default:
	}
}

// watchSignals calls the function of each signal, on a goroutine that ends with the program.
func (p *process) watchSignals(actions map[os.Signal]func()) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, slices.Collect(maps.Keys(actions))...)
	go func() {
		for s := range signals {
			p.log.Info().Stringer("signal", s).Msg("signal received")
			actions[s]()
		}
	}()
}

// requestDrain stops or resumes handing out jobs; before clients are served, the request waits. Any goroutine may call
// it.
func (p *process) requestDrain(on bool) {
	select {
	case p.drainRequests <- on:
	default: // several requests are already waiting
	}
}
