package httpapi

import (
	"net/http"
	"strings"
	"time"
)

// missingPage is the page for an unknown path; nil if the client is not a browser or the path belongs to the API.
func (s *Server) missingPage(r *http.Request) http.Handler {
	if r.Method != http.MethodGet || !strings.Contains(r.Header.Get("Accept"), "text/html") ||
		strings.HasPrefix(r.URL.Path, "/api/") {
		return nil
	}
	return s.missing
}

// routed turns the errors of the mux (404, 405) into Problems.
func (s *Server) routed(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		refusal := refusalWriter{header: make(http.Header)}
		h.ServeHTTP(&refusal, r)
		switch refusal.status {
		case http.StatusMethodNotAllowed:
			w.Header().Set("Allow", refusal.header.Get("Allow"))
			problem(refusal.status, codeMethodNotAllowed, r.Method+" is not allowed here; Allow says what is").write(w)
		case http.StatusNotFound:
			if page := s.missingPage(r); page != nil {
				page.ServeHTTP(w, r)
				return
			}
			problem(refusal.status, codeRouteNotFound, "there is nothing at this path").write(w)
		default: // a redirect to the clean path
			mux.ServeHTTP(w, r)
		}
	})
}

// refusalWriter records the status with which the mux refuses a request.
type refusalWriter struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (w *refusalWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *refusalWriter) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *refusalWriter) Write(b []byte) (int, error) { return len(b), nil }

// deadlineIn is the time by which a connection must have made progress.
func deadlineIn(d time.Duration) time.Time {
	return time.Now().Add(d) //nolint:forbidigo // deadlines of sockets use the system's time
}
