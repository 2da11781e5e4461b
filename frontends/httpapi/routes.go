package httpapi

import (
	"net/http"

	"broker/core"
)

// routes are what people and their tools ask about jobs, queues and workers.
func (s *Server) routes(mux *http.ServeMux) {
	mux.Handle("GET /api/queues", s.reads(s.queues))
	mux.Handle("GET /api/queues/{name}", s.reads(s.queue))
	mux.Handle("POST /api/queues/{name}/pause", s.changes(s.pause(true)))
	mux.Handle("POST /api/queues/{name}/resume", s.changes(s.pause(false)))
	mux.Handle("POST /api/queues/{name}/remove", s.changes(s.remove))

	mux.Handle("GET /api/workers", s.reads(s.workers))
	for _, state := range []string{"quiet", "terminate"} {
		mux.Handle("POST /api/workers/"+state, s.changes(s.dismiss(state)))
		mux.Handle("POST /api/workers/{wid}/"+state, s.changes(s.dismiss(state)))
	}

	mux.Handle("GET /api/jobs", s.reads(s.jobs))
	mux.Handle("GET /api/jobs/{id}", s.reads(s.job))
	for what, op := range map[string]func(core.Ref) core.Op{
		"requeue": func(r core.Ref) core.Op { return &core.Enqueue{Ref: r} },
		"kill":    func(r core.Ref) core.Op { return &core.Bury{Ref: r} },
		"cancel":  func(r core.Ref) core.Op { return &core.Cancel{Ref: r} },
	} {
		mux.Handle("POST /api/jobs/{id}/"+what, s.changes(s.act(what, op)))
	}

	mux.Handle("GET /api/cron", s.reads(s.cron))
	mux.Handle("GET /api/history", s.reads(s.history))
}
