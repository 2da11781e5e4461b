package console

import (
	"net/http"

	"broker/core"
)

// routes are what people and their tools ask about jobs, queues and workers.
func (c *Console) routes(mux *http.ServeMux) {
	mux.Handle("GET /api/queues", c.reads(c.queues))
	mux.Handle("GET /api/queues/{name}", c.reads(c.queue))
	mux.Handle("POST /api/queues/{name}/pause", c.changes(c.pause(true)))
	mux.Handle("POST /api/queues/{name}/resume", c.changes(c.pause(false)))
	mux.Handle("POST /api/queues/{name}/remove", c.changes(c.remove))

	mux.Handle("GET /api/workers", c.reads(c.workers))
	for _, state := range []string{"quiet", "terminate"} {
		mux.Handle("POST /api/workers/"+state, c.changes(c.dismiss(state)))
		mux.Handle("POST /api/workers/{wid}/"+state, c.changes(c.dismiss(state)))
	}

	mux.Handle("GET /api/jobs", c.reads(c.jobs))
	mux.Handle("GET /api/jobs/{id}", c.reads(c.job))
	for what, op := range map[string]func(core.Ref) core.Op{
		"requeue": func(r core.Ref) core.Op { return &core.Enqueue{Ref: r} },
		"kill":    func(r core.Ref) core.Op { return &core.Bury{Ref: r} },
		"cancel":  func(r core.Ref) core.Op { return &core.Cancel{Ref: r} },
	} {
		mux.Handle("POST /api/jobs/{id}/"+what, c.changes(c.act(what, op)))
	}

	mux.Handle("GET /api/cron", c.reads(c.cron))
	mux.Handle("GET /api/history", c.reads(c.history))
}
