package httpapi

import (
	"net/http"
	"runtime"
	"strings"

	"broker/operate/service"
)

// readsPerProcessor is how many reads are worked on at once for each processor.
const readsPerProcessor = 4

// limitReads bounds how many reads are worked on at once, so that a crowd of them takes no processor from other clients. A read has a
// place until it sends the first byte of its answer: clients that do not read their answers, and streams, need none.
func limitReads(next http.Handler) http.Handler {
	turns := service.NewTurns(readsPerProcessor * runtime.GOMAXPROCS(0))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !takesTurns(r) {
			next.ServeHTTP(w, r)
			return
		}
		ctx, turn, err := turns.Take(r.Context())
		if err != nil {
			return // the client has left
		}
		defer turn.End()
		if strings.HasPrefix(r.URL.Path, apiPath+"/") {
			r = r.WithContext(ctx)
		} // else a page: others may wait for what it reads, so it keeps its place
		next.ServeHTTP(&turnWriter{w, turn}, r)
	})
}

// takesTurns reports whether a request is a read that is answered at once. Health checks are answered at any time, and a profile
// takes as long as it measures.
func takesTurns(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && !isHealth(r.URL.Path) && !strings.HasPrefix(r.URL.Path, "/debug/") &&
		!r.URL.Query().Has("wait")
}

// turnWriter ends a turn when the answer begins.
type turnWriter struct {
	http.ResponseWriter
	turn *service.Turn
}

// WriteHeader implements http.ResponseWriter.
func (w *turnWriter) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.turn.End() // streams send their header before they wait
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *turnWriter) Write(b []byte) (int, error) {
	w.turn.End()
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *turnWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
