package httpapi

import (
	"net/http"
	"net/http/pprof"

	"broker/access"
)

// profiles serves the profiles that go tool pprof reads from a running program, but not its command line, which may
// contain a password.
func (s *Server) profiles(mux *http.ServeMux) {
	const at = "GET /debug/pprof/"
	for name, serve := range map[string]http.HandlerFunc{
		"": pprof.Index, "profile": pprof.Profile, "trace": pprof.Trace,
	} {
		mux.Handle(at+name, s.restricted(access.Admin, serve))
	}
}
