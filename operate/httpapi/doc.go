// Package httpapi is the broker's HTTP port: the API under /api/v1, health checks, metrics, and the statistics that
// Faktory's own tools read. docs/http.md shows how to use it.
//
//	/api/v1/…       the API: each file registers the operations of one resource with huma, which validates requests and writes
//	                the API document; package service implements the operations
//	GET /healthz    200 while the process works, 503 once the store has failed
//	GET /readyz     200 while clients are served; 503 during the start, with its progress, and while draining or stopping
//	GET /metrics    metrics for Prometheus
//	GET /stats      the content of Faktory's INFO, as on Faktory's port 7420
//	GET /health     a short form of it
//
// In a cluster, each node that follows serves the routes of producers and workers (homes.go), with a service over the
// link to the leader. The package frontends/relay passes the other requests on.
//
// Every error is a [Problem]. Health checks are public. Everything else needs credentials if any are configured
// (auth.go). Web pages of other sites cannot change anything. openapi.json is the document of the API; a test keeps it
// up to date. The port answers before the store is open, so that operators can watch a long start. [Server.Ready] gives
// it the broker.
package httpapi
