package httpapi

import (
	"context"
	"net/http"
	"strings"

	"broker/frontends/shared/httpserver"
)

// homes has a row for each route of the API, and for the others that each node answers for itself. All else, such as
// the pages, is at the leader: operations, the audit log, idempotency keys and streams of events are in the leader's
// service. What producers and workers live by needs only a core.Broker.
var homes = map[string]httpserver.Home{
	"GET /healthz": httpserver.AtEach,
	"GET /readyz":  httpserver.AtEach,
	"GET /metrics": httpserver.AtEach,

	"GET /api/v1/audit":                     httpserver.AtLeader,
	"POST /api/v1/audit/{number}/undo":      httpserver.AtLeader,
	"GET /api/v1/backup":                    httpserver.AtLeader,
	"POST /api/v1/backup":                   httpserver.AtLeader,
	"GET /api/v1/batches":                   httpserver.AtLeader,
	"POST /api/v1/batches":                  httpserver.AtLeader,
	"GET /api/v1/batches/{id}":              httpserver.AtLeader,
	"POST /api/v1/batches/{id}/commit":      httpserver.AtLeader,
	"POST /api/v1/batches/{id}/reopen":      httpserver.AtLeader,
	"GET /api/v1/cluster":                   httpserver.AtEach,
	"POST /api/v1/cluster/add":              httpserver.AtLeader,
	"POST /api/v1/cluster/remove":           httpserver.AtLeader,
	"POST /api/v1/cluster/transfer":         httpserver.AtLeader,
	"GET /api/v1/drain":                     httpserver.AtLeader,
	"POST /api/v1/drain":                    httpserver.AtLeader,
	"GET /api/v1/events":                    httpserver.AtLeader,
	"GET /api/v1/finished-jobs":             httpserver.AtLeader,
	"GET /api/v1/histograms":                httpserver.AtLeader,
	"POST /api/v1/job-actions":              httpserver.AtLeader,
	"GET /api/v1/jobs":                      httpserver.AtLeader,
	"POST /api/v1/jobs":                     httpserver.AtNode,
	"GET /api/v1/jobs/{id}":                 httpserver.AtLeader,
	"PATCH /api/v1/jobs/{id}":               httpserver.AtLeader,
	"DELETE /api/v1/jobs/{id}":              httpserver.AtLeader,
	"GET /api/v1/jobs/{id}/log":             httpserver.AtLeader,
	"POST /api/v1/lease":                    httpserver.AtNode,
	"POST /api/v1/leases":                   httpserver.AtNode,
	"POST /api/v1/leases/complete":          httpserver.AtNode,
	"POST /api/v1/leases/fail":              httpserver.AtNode,
	"POST /api/v1/leases/heartbeat":         httpserver.AtNode,
	"POST /api/v1/leases/release":           httpserver.AtNode,
	"POST /api/v1/leases/{token}/complete":  httpserver.AtNode,
	"POST /api/v1/leases/{token}/fail":      httpserver.AtNode,
	"POST /api/v1/leases/{token}/heartbeat": httpserver.AtNode,
	"POST /api/v1/leases/{token}/log":       httpserver.AtNode,
	"POST /api/v1/leases/{token}/progress":  httpserver.AtNode,
	"POST /api/v1/leases/{token}/release":   httpserver.AtNode,
	"GET /api/v1/limits":                    httpserver.AtLeader,
	"PUT /api/v1/limits":                    httpserver.AtLeader,
	"DELETE /api/v1/limits":                 httpserver.AtLeader,
	"GET /api/v1/marks":                     httpserver.AtLeader,
	"POST /api/v1/marks":                    httpserver.AtLeader,
	"DELETE /api/v1/marks/{id}":             httpserver.AtLeader,
	"GET /api/v1/operations":                httpserver.AtLeader,
	"GET /api/v1/operations/{id}":           httpserver.AtLeader,
	"DELETE /api/v1/operations/{id}":        httpserver.AtLeader,
	"POST /api/v1/operations/{id}/undo":     httpserver.AtLeader,
	"GET /api/v1/policies":                  httpserver.AtLeader,
	"GET /api/v1/queues":                    httpserver.AtLeader,
	"GET /api/v1/queues/{name}":             httpserver.AtLeader,
	"PATCH /api/v1/queues/{name}":           httpserver.AtLeader,
	"DELETE /api/v1/queues/{name}":          httpserver.AtLeader,
	"POST /api/v1/queues/{name}/clear":      httpserver.AtLeader,
	"GET /api/v1/queues/{name}/keys":        httpserver.AtLeader,
	"POST /api/v1/queues/{name}/lease":      httpserver.AtNode,
	"POST /api/v1/reload":                   httpserver.AtLeader,
	"POST /api/v1/resume":                   httpserver.AtLeader,
	"GET /api/v1/schedules":                 httpserver.AtLeader,
	"POST /api/v1/schedules":                httpserver.AtLeader,
	"GET /api/v1/schedules/{name}":          httpserver.AtLeader,
	"PATCH /api/v1/schedules/{name}":        httpserver.AtLeader,
	"PUT /api/v1/schedules/{name}":          httpserver.AtLeader,
	"DELETE /api/v1/schedules/{name}":       httpserver.AtLeader,
	"POST /api/v1/schedules/{name}/pause":   httpserver.AtLeader,
	"POST /api/v1/schedules/{name}/resume":  httpserver.AtLeader,
	"POST /api/v1/schedules/{name}/run":     httpserver.AtLeader,
	"GET /api/v1/series":                    httpserver.AtLeader,
	"GET /api/v1/settings":                  httpserver.AtLeader,
	"GET /api/v1/storage":                   httpserver.AtLeader,
	"POST /api/v1/storage/check":            httpserver.AtLeader,
	"GET /api/v1/summary":                   httpserver.AtLeader,
	"GET /api/v1/types/{name}":              httpserver.AtLeader,
	"PATCH /api/v1/types/{name}":            httpserver.AtLeader,
	"GET /api/v1/workers":                   httpserver.AtLeader,
	"POST /api/v1/workers/quiet":            httpserver.AtLeader,
	"POST /api/v1/workers/terminate":        httpserver.AtLeader,
	"DELETE /api/v1/workers/{id}":           httpserver.AtLeader,
	"POST /api/v1/workers/{id}/quiet":       httpserver.AtLeader,
	"POST /api/v1/workers/{id}/terminate":   httpserver.AtLeader,
	"GET /api/v1/workflows/{id}":            httpserver.AtLeader,
}

// keyHeader has an idempotency key, which the leader's service knows.
const keyHeader = "Idempotency-Key"

// HomeOf is where a request is served in a cluster. It must not be called before HTTP.
func (s *Server) HomeOf(r *http.Request) httpserver.Home {
	if strings.HasPrefix(r.URL.Path, "/debug/") {
		return httpserver.AtEach // profiles
	}
	_, pattern := s.mux.Handler(r)
	home := homes[pattern]
	if home == httpserver.AtNode && r.Header.Get(keyHeader) != "" {
		return httpserver.AtLeader
	}
	return home
}

// linkKey is the context key of requests that are served over the link to the leader.
type linkKey struct{}

// OverLink passes requests on that are to be served over the link to the leader; see Follow.
func OverLink(to http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), linkKey{}, true)))
	})
}
