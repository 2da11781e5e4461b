package httpapi

import (
	"net/http"
	"runtime"
	"strings"

	"broker/operate/service"
)

// readsPerProcessor is the number of reads that run at the same time, for each processor.
const readsPerProcessor = 4

// limitReads limits the reads that run at the same time, so that many reads leave processor time for other clients. A
// read occupies a place until it sends the first byte of its response. Slow readers and streams therefore occupy no
// place.
func limitReads(next http.Handler) http.Handler {
	turns := service.NewTurns(readsPerProcessor * runtime.GOMAXPROCS(0))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !takesTurns(r) {
			next.ServeHTTP(w, r)
			return
		}
		ctx, turn, err := turns.Take(r.Context())
		if err != nil {
			return // the client has disconnected
		}
		defer turn.End()
		if strings.HasPrefix(r.URL.Path, apiPath+"/") {
			r = r.WithContext(ctx)
		} // else a page: other reads may wait for its result, so it keeps its place
		next.ServeHTTP(&turnWriter{w, turn}, r)
	})
}

// takesTurns reports whether limitReads applies to a request: a read that does not wait. Health checks are never
// limited, and a profile takes as long as it measures.
func takesTurns(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && !isHealth(r.URL.Path) &&
		!strings.HasPrefix(r.URL.Path, "/debug/") &&
		!r.URL.Query().Has("wait")
}

// turnWriter gives up the place of a read when its response begins.
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
