package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"broker/operate/service"
)

// apiPath is the prefix of version 1 of the API.
const apiPath = "/api/v1"

// apiVersion is the version in the API document. Raise it with each change that clients can see.
const apiVersion = "1.0.0"

const apiDescription = `Jobs, queues and workers of the broker over HTTP.

Times are RFC 3339, spans are numbers with the unit in the name (lease_for_s), sizes are bytes. Errors are problem documents
(RFC 9457) whose code does not change. Lists return an opaque cursor; without one there are no more. A job is named by its
id; seq:12 names it by its number, and H:host:12 by its Gearman handle. Names of queues are percent-encoded in paths.`

// newAPI registers all operations on mux.
func (s *Server) newAPI(mux *http.ServeMux) huma.API {
	useProblems()
	config := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info:    &huma.Info{Title: "Broker", Version: apiVersion, Description: apiDescription},
			Servers: []*huma.Server{{URL: "/"}},
			Components: &huma.Components{
				Schemas: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"bearer": {Type: "http", Scheme: "bearer", Description: "a principal's token, or http.password"},
					"basic": {
						Type: "http", Scheme: "basic", Description: "any user name, and a token or http.password",
					},
				},
			},
			Security: []map[string][]string{{}, {"bearer": {}}, {"basic": {}}},
			Tags: []*huma.Tag{
				{Name: "jobs"},
				{Name: "leases", Description: "Workers over HTTP."},
				{Name: "queues"},
				{Name: "batches"},
				{Name: "schedules"},
				{Name: "limits"},
				{Name: "types"},
				{Name: "workers"},
				{Name: "events"},
				{Name: "broker"},
				{Name: "cluster", Description: "Each node answers for itself; changes go to the leader."},
			},
		},
		Formats:       map[string]huma.Format{"application/json": jsonFormat, "json": jsonFormat},
		DefaultFormat: "application/json",

		RejectUnknownQueryParameters: true,
	}
	api := huma.NewAPI(config, humago.NewAdapter(guardedMux{mux, s}, ""))
	s.registerJobs(api)
	s.registerActions(api)
	s.registerLeases(api)
	s.registerQueues(api)
	s.registerWorkers(api)
	s.registerBatches(api)
	s.registerWorkflows(api)
	s.registerEvents(api)
	s.registerLimits(api)
	s.registerTypes(api)
	s.registerSeries(api)
	s.registerFinished(api)
	s.registerStorage(api)
	s.registerBroker(api)
	s.registerMarks(api)
	s.registerSchedules(api)
	s.registerCluster(api)
	describeArgs(api)
	describeProtocols(api)
	openAnswers(api)
	return api
}

// jsonFormat writes JSON without the escapes that only HTML needs.
var jsonFormat = huma.Format{
	Marshal: func(w io.Writer, v any) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return e.Encode(v)
	},
	Unmarshal: json.Unmarshal,
}

// guardedMux runs the guards before each operation.
type guardedMux struct {
	*http.ServeMux
	s *Server
}

// HandleFunc implements humago.Mux.
func (m guardedMux) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	method, path, _ := strings.Cut(pattern, " ")
	h := anyBodyIsJSON(http.HandlerFunc(handler))
	if path != clusterPath {
		h = m.s.whenReady(h)
	}
	if method == http.MethodGet && path != backupPath {
		m.Handle(pattern, m.s.guarded(h))
		return
	}
	m.Handle(pattern, m.s.protected(h))
}

// startTimeout is the default time that a request waits for the store to open. Clients of the other protocols wait too.
// A large store takes longer.
const startTimeout = 5 * time.Second

// whenReady makes API requests wait until the store is open, at most startTimeout. A request keeps the service that it
// began with: a node of a cluster that loses the lead has none for others.
func (s *Server) whenReady(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found := s.awaitService(r.Context())
		if found == nil {
			s.starting().write(w)
			return
		}
		r.Context().Value(visitKey{}).(*visit).service = found
		next.ServeHTTP(w, r)
	})
}

// awaitService waits for the broker to be ready, and returns its service; nil: there is none. A follower has one only
// for requests over its link.
func (s *Server) awaitService(ctx context.Context) *service.Service {
	ctx, cancel := context.WithTimeout(ctx, s.startTimeout)
	defer cancel()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for {
		if b := s.backend.Load(); b != nil {
			return b.Service
		}
		if ctx.Value(linkKey{}) != nil {
			return s.linked.Load()
		}
		if s.stopping.Load() || s.options.Cluster != nil { // a node of a cluster has waited for a leader before
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-poll.C:
		}
	}
}

// anyBodyIsJSON makes the content type optional, because curl sends the type of a form by default.
func anyBodyIsJSON(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ct, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); ct == "" ||
			strings.TrimSpace(ct) == "application/x-www-form-urlencoded" {
			r.Header.Set("Content-Type", "application/json")
		}
		next.ServeHTTP(w, r)
	})
}

// operation makes a huma.Operation. It adds the errors that all operations have in common.
func operation(id, method, path, tag, summary string, errors ...int) huma.Operation {
	return huma.Operation{
		OperationID: id, Method: method, Path: apiPath + path, Tags: []string{tag}, Summary: summary,
		Errors:          append(errors, http.StatusUnauthorized, http.StatusForbidden, http.StatusServiceUnavailable),
		MaxBodyBytes:    maxSmallBody,
		BodyReadTimeout: bodyTimeout,
	}
}

// register adds an operation. Its handler returns the errors of the service, which become Problems here, with the places
// of the fields that they name.
func register[In, Out any](s *Server, api huma.API, o huma.Operation, handle func(context.Context, *In) (*Out, error)) {
	at := placesOf(reflect.TypeFor[In]())
	huma.Register(api, o, func(ctx context.Context, in *In) (*Out, error) {
		out, err := handle(ctx, in)
		if err != nil {
			return nil, s.problemOf(err, at)
		}
		return out, nil
	})
}

// output is a response that is only a body.
type output[Body any] struct{ Body Body }

// bodyOf makes the response from a result of the service.
func bodyOf[Body any](body Body, err error) (*output[Body], error) {
	return &output[Body]{body}, err
}

// Bounds of request bodies.
const (
	maxSmallBody = 256 << 10
	bodyTimeout  = 30 * time.Second
)
