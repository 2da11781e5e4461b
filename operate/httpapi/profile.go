package httpapi

import (
	"net/http"
	"net/http/pprof"

	"broker/frontends/access"
)

// profiles serves what Go's own tools (go tool pprof) read of a running program, but not its command line: there may be a
// password in it.
func (s *Server) profiles(mux *http.ServeMux) {
	const at = "GET /debug/pprof/"
	for name, serve := range map[string]http.HandlerFunc{"": pprof.Index, "profile": pprof.Profile, "trace": pprof.Trace} {
		mux.Handle(at+name, s.restricted(access.Admin, serve))
	}
}
