// Package httpapi is the broker's HTTP port: the API under /api/v1, health checks, metrics, and the numbers that Faktory's own
// tools ask for. docs/http.md shows how it is used.
//
//	/api/v1/…       the API: each file registers the operations of one resource with huma, which checks what requests carry
//	                and writes the document; what they do is in package service
//	GET /healthz    200 while the process can do its work, 503 once the store has failed
//	GET /readyz     200 while clients are served; 503 before, with how far the start has come, and while draining or stopping
//	GET /metrics    metrics for Prometheus
//	GET /stats      what Faktory's INFO says; as on Faktory's port 7420
//	GET /health     a short form of it
//
// Every error is a [Problem]. Health is for everybody; all else needs credentials once there are any (auth.go), and pages of
// other sites can change nothing. openapi.json is the document of the API; a test holds it true. The port answers before the
// store is open, so that a long start can be watched; [Server.Ready] gives it the broker.
package httpapi
