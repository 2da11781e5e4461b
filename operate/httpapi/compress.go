package httpapi

import (
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// minCompressed is the size from which an answer is compressed, in bytes.
const minCompressed = 2 << 10

// compressed compresses large answers for clients that accept gzip. Event streams are not compressed: each event has to leave at
// once.
func compressed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept-Encoding")
		if r.Method == http.MethodHead || !acceptsGzip(r.Header.Values("Accept-Encoding")) {
			next.ServeHTTP(w, r)
			return
		}
		c := &compressor{ResponseWriter: w}
		next.ServeHTTP(c, r)
		c.close() // not after a panic: the client must see that the answer is incomplete
	})
}

// acceptsGzip reports whether a client takes answers in gzip.
func acceptsGzip(headers []string) bool {
	for part := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		coding, parameters, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		quality, given := strings.CutPrefix(strings.ReplaceAll(parameters, " ", ""), "q=")
		q, err := strconv.ParseFloat(quality, 64)
		return !given || err == nil && q > 0
	}
	return false
}

// compressible reports whether a media type is text.
func compressible(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	switch kind = strings.ToLower(strings.TrimSpace(kind)); kind {
	case "text/event-stream":
		return false
	case "application/json", "application/javascript", "application/xml", "image/svg+xml":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json")
}

var gzipWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// compressor keeps the beginning of an answer until it is clear whether the answer is compressed.
type compressor struct {
	http.ResponseWriter
	status  int    // as the handler set it; zero: not yet
	start   []byte // of the body, until started
	started bool   // the header is sent
	gzip    *gzip.Writer
}

// Unwrap lets http.ResponseController set deadlines.
func (c *compressor) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (c *compressor) WriteHeader(status int) {
	switch {
	case c.started || status < http.StatusOK:
		c.ResponseWriter.WriteHeader(status)
	case c.status == 0:
		c.status = status
	}
}

// Write implements http.ResponseWriter.
func (c *compressor) Write(p []byte) (int, error) {
	if !c.started {
		if len(c.start)+len(p) < minCompressed {
			c.start = append(c.start, p...)
			return len(p), nil
		}
		if err := c.begin(c.suitable(p)); err != nil {
			return 0, err
		}
	}
	if c.gzip != nil {
		return c.gzip.Write(p)
	}
	return c.ResponseWriter.Write(p)
}

// suitable reports whether an answer with the next part p of its body can be compressed.
func (c *compressor) suitable(p []byte) bool {
	h := c.Header()
	if h.Get("Content-Encoding") != "" || h.Get("Content-Range") != "" || c.status != 0 && c.status != http.StatusOK && c.status < http.StatusBadRequest {
		return false
	}
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", http.DetectContentType(append(c.start, p...)))
	}
	return compressible(h.Get("Content-Type"))
}

// begin sends the header and what was kept of the body.
func (c *compressor) begin(compress bool) error {
	c.started = true
	if compress {
		h := c.Header()
		h.Set("Content-Encoding", "gzip")
		h.Del("Content-Length")
		h.Del("Accept-Ranges")
		c.gzip = gzipWriters.Get().(*gzip.Writer)
		c.gzip.Reset(c.ResponseWriter)
	}
	if c.status != 0 {
		c.ResponseWriter.WriteHeader(c.status)
	}
	start := c.start
	if c.start = nil; len(start) == 0 {
		return nil
	}
	_, err := c.Write(start)
	return err
}

// FlushError implements what http.ResponseController needs. An answer that is flushed before it is large stays plain.
func (c *compressor) FlushError() error {
	if !c.started {
		if err := c.begin(false); err != nil {
			return err
		}
	}
	if c.gzip != nil {
		if err := c.gzip.Flush(); err != nil {
			return err
		}
	}
	return http.NewResponseController(c.ResponseWriter).Flush()
}

// close ends the answer. Errors mean that the client has left.
func (c *compressor) close() {
	if !c.started {
		_ = c.begin(false)
	}
	if c.gzip != nil {
		_ = c.gzip.Close()
		c.gzip.Reset(nil)
		gzipWriters.Put(c.gzip)
	}
}
