// Package httpapi is the broker's HTTP port: health, metrics, and the numbers that Faktory's own tools ask for.
//
//	GET /healthz   200 while the process can do its work, 503 once the store has failed
//	GET /readyz    200 while clients are served; 503 before, with how far the start has come, and while stopping
//	GET /metrics   text exposition
//	GET /stats     what Faktory's INFO says; as on Faktory's port 7420
//	GET /health    a short form of it
//
//	/api/queues, /api/jobs, /api/workers, /api/cron, /api/history    see routes.go and docs/http.md
//	POST /api/backup {"dir": "/absolute/new"}    copies the store while the broker goes on
//	POST /api/drain  {"refuse_jobs": false}      hands out no more jobs; /readyz then answers 503
//	POST /api/resume                             goes on
//
// A password guards all but the three kinds of health, and no web page of somebody else can give orders (admin.go). The
// port answers before the store is open, so that a long start can be watched; [Server.Ready] gives it the broker.
package httpapi
