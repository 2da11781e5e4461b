package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"time"
)

// profileSeconds is how long a profile of the processor takes by default.
const profileSeconds = 30

// profiles serves what Go's own tools (go tool pprof) read of a running program, as net/http/pprof does. It leaves out the command
// line, which may contain a password, and differences of two profiles, which go tool pprof computes itself (-base).
func (s *Server) profiles(mux *http.ServeMux) {
	const at = "GET /debug/pprof/"
	for name, serve := range map[string]http.HandlerFunc{
		"{$}": listProfiles, "{name}": serveProfile,
		"profile": timed(profileSeconds, pprof.StartCPUProfile, pprof.StopCPUProfile),
		"trace":   timed(1, trace.Start, trace.Stop),
	} {
		mux.Handle(at+name, s.guarded(serve))
	}
}

// listProfiles lists the profiles with how many entries each has.
func listProfiles(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for _, p := range pprof.Profiles() {
		_, _ = fmt.Fprintf(w, "%s %d\n", p.Name(), p.Count()) // the client has left
	}
	_, _ = fmt.Fprint(w, "profile?seconds=30\ntrace?seconds=1\n")
}

// serveProfile serves a profile of the present moment; with debug=1 or 2 as text.
func serveProfile(w http.ResponseWriter, r *http.Request) {
	p := pprof.Lookup(r.PathValue("name"))
	if p == nil {
		http.Error(w, "no such profile", http.StatusNotFound)
		return
	}
	debug, _ := strconv.Atoi(r.FormValue("debug")) // anything else is 0
	if debug > 0 {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	} else {
		w.Header().Set("Content-Type", "application/octet-stream")
	}
	_ = p.WriteTo(w, debug) // the client has left
}

// timed serves what is recorded for a number of seconds.
func timed(seconds float64, start func(io.Writer) error, stop func()) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		seconds := seconds
		if given, err := strconv.ParseFloat(r.FormValue("seconds"), 64); err == nil && given > 0 && given < time.Hour.Seconds() {
			seconds = given
		}
		d := time.Duration(seconds * float64(time.Second))
		extendDeadlines(w, d)
		w.Header().Set("Content-Type", "application/octet-stream")
		if err := start(w); err != nil { // another one is being recorded
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		defer stop()
		select {
		case <-time.After(d):
		case <-r.Context().Done():
		}
	}
}
