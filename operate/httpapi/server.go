package httpapi

import (
	"cmp"
	"encoding/json"
	"log"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"broker/access"
	"broker/core"
	"broker/core/clock"
	"broker/frontends/shared/httpserver"
	"broker/operate/service"
)

// Options of the server.
type Options struct {
	Version string
	Log     zerolog.Logger
	Now     func() core.Instant // nil: the system's clock

	Access           *access.Control // principals; nil: none
	Password         string          // of basic authentication, with any user name, or as a bearer token; empty: none
	Locked           bool            // no client is admitted, because the settings define none
	DefaultPrincipal string          // for clients without credentials, if principals are configured

	Cluster service.Cluster // nil: the broker is not part of a cluster

	Profiling    bool  // serve profiles of the process
	MaxConns     int   // connections at once; 0: no bound
	MaxBodyBytes int64 // for requests with jobs or results; 0: the default
}

// defaultMaxBody limits requests with jobs or results.
const defaultMaxBody = 64 << 20

// Backend is the source of the data that the server reports.
type Backend struct {
	Service *service.Service
	Broker  core.Broker
	Parts   Parts
}

// Parts report about the parts of the process that the broker does not know. Any goroutine may call them.
type Parts interface {
	Info() []byte              // Faktory's INFO, in JSON
	Health() []byte            // the public part of INFO
	SyncLatency() core.Latency // of the store

	Connections() map[string]service.Connections // by front-end
	PushTargets() []service.PushTarget
	SQSActions() []SQSAction
	ArchiveStatus() *core.Archive                // nil: no archive
	SpanCounts() (sent, dropped uint64, on bool) // to a collector
}

// SQSAction counts the SQS requests with an action since the start, by result.
type SQSAction struct {
	Name                  string
	Done, Refused, Failed uint64
	Seconds               float64 // time of the replies, including long polls
}

// Server answers HTTP requests.
type Server struct {
	options      Options
	metrics      *metrics
	backend      atomic.Pointer[Backend]
	linked       atomic.Pointer[service.Service] // see Follow
	mux          *http.ServeMux                  // set by HTTP
	startTimeout time.Duration
	progress     atomic.Pointer[progress]
	stopping     atomic.Bool
	pages        map[string]http.Handler
	missing      http.Handler // nil: no page
	limiter      *connLimiter
	document     func() []byte // of serveDocument
}

// progress is the progress of the start.
type progress struct {
	Jobs uint64  `json:"jobs"` // jobs read so far
	Part float64 `json:"part"` // part of the store that is read, 0 to 1
}

// New makes a server that is not ready.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = clock.System{}.Now
	}
	if o.Access == nil {
		o.Access = &access.Control{}
	}
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, defaultMaxBody)
	s := &Server{
		options: o, startTimeout: startTimeout, limiter: newConnLimiter(o.MaxConns), pages: map[string]http.Handler{},
	}
	s.progress.Store(&progress{})
	s.metrics = newMetrics(o.Version, &s.backend, o.Access)
	if o.Cluster != nil {
		s.metrics.cluster = o.Cluster.Numbers
	}
	return s
}

// Listener receives events for metrics from the engine.
func (s *Server) Listener() core.Listener { return s.metrics }

// Progress reports the progress of the start. Any goroutine may call it.
func (s *Server) Progress(jobs uint64, part float64) {
	s.progress.Store(&progress{Jobs: jobs, Part: part})
}

// Ready starts to serve clients.
func (s *Server) Ready(b Backend) {
	s.metrics.read(b.Broker) // the totals start here
	s.backend.Store(&b)
}

// Follow gives the server the service for requests over the link to a leader, as long as this node does not lead; see
// OverLink and service.NewFollower.
func (s *Server) Follow(over *service.Service) { s.linked.Store(over) }

// Unready stops serving clients until Ready is called again.
func (s *Server) Unready() {
	s.backend.Store(nil)
	s.metrics.forget()
}

// Stopping makes the server refuse new clients.
func (s *Server) Stopping() { s.stopping.Store(true) }

// HTTP is the net/http server of the API and the pages, with timeouts for silent clients.
func (s *Server) HTTP() *http.Server {
	mux := http.NewServeMux()
	s.mux = mux
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.HandleFunc("GET /health", s.info(Parts.Health))
	mux.Handle("GET /metrics", s.restricted(access.Read, s.serveMetrics().ServeHTTP))
	mux.Handle("GET /stats", s.restricted(access.Read, s.info(Parts.Info)))
	s.serveDocument(mux, s.newAPI(mux))
	if s.options.Profiling {
		s.profiles(mux)
	}
	for pattern, h := range s.pages {
		mux.Handle(pattern, h)
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	server := httpserver.New(s.limiter.counted(compressed(limitReads(s.routed(mux)))), readTimeout, writeTimeout)
	server.Protocols, server.HTTP2 = &protocols, &http.HTTP2Config{MaxConcurrentStreams: 100}
	server.ConnState, server.ConnContext = s.limiter.connState, s.limiter.connContext
	server.ErrorLog = log.New(libraryLog{s.options.Log}, "", 0)
	return server
}

// readTimeout is the maximum time for a request to arrive. Operations give their bodies bodyTimeout.
const readTimeout = 10 * time.Second

// writeTimeout is the maximum time for the response to a request, without waits. It is longer than bodyTimeout, so that
// a client that sends its body too slowly gets a response.
const writeTimeout = bodyTimeout + 10*time.Second

// sendJSON sends a value as JSON.
func sendJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		panic(err) // text and numbers
	}
	send(w, status, append(body, '\n'))
}

func send(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails only if the client has disconnected
}
