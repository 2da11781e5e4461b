package httpapi

import (
	"net/http"

	"broker/core"
	"broker/operate/service"
)

// healthz reports whether the process works. A long start is not a failure.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	if b := s.backend.Load(); b != nil && b.Broker.Stopped() {
		sendJSON(w, http.StatusServiceUnavailable, map[string]any{"status": "store failed, no work is taken"})
		return
	}
	status := "ok"
	switch {
	case !s.metrics.isDiskLow():
	case s.backend.Load() == nil:
		status = "disk of this node nearly full"
	default:
		status = "disk nearly full, new jobs are refused"
	}
	sendJSON(w, http.StatusOK, map[string]any{"status": status})
}

// readyz reports whether clients are served.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	b := s.backend.Load()
	switch {
	case s.stopping.Load():
		sendJSON(w, http.StatusServiceUnavailable, map[string]any{"ready": false, "phase": "stopping"})
	case b == nil && s.options.Cluster != nil:
		s.clusterReady(w, r)
	case b == nil:
		sendJSON(w, http.StatusServiceUnavailable, map[string]any{
			"ready": false, "phase": "recovering", "progress": s.progress.Load(),
		})
	case b.Broker.Stopped():
		sendJSON(w, http.StatusServiceUnavailable, map[string]any{"ready": false, "phase": "store failed"})
	default:
		if draining, leased := drainState(b); draining {
			sendJSON(w, http.StatusServiceUnavailable,
				map[string]any{"ready": false, "phase": "draining", "leased": leased})
			return
		}
		sendJSON(w, http.StatusOK, map[string]any{"ready": true})
	}
}

// drainState reads whether the broker is draining, and how many jobs are still running.
func drainState(b *Backend) (draining bool, leased int) {
	for _, r := range core.DoOnce(b.Broker, core.Internal, &core.ReadStats{}) {
		if r.Stats != nil {
			return r.Stats.Draining, r.Stats.Jobs[core.Leased]
		}
	}
	return false, 0
}

// info serves Faktory's INFO, or a part of it.
func (s *Server) info(of func(Parts) []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		b := s.backend.Load()
		if b == nil {
			s.starting().write(w)
			return
		}
		send(w, http.StatusOK, of(b.Parts))
	}
}

// starting is the response to all requests that need the store before it is open.
func (s *Server) starting() *Problem {
	code, detail := codeStarting, "the broker is starting"
	if s.options.Cluster != nil {
		code = string(service.CodeNoLeader)
		detail = "no node of the cluster serves clients now; GET " + clusterPath + " lists the nodes"
	}
	p := problem(http.StatusServiceUnavailable, code, detail)
	p.retryAfterS = 1
	return p
}
