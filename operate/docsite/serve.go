package docsite

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"sync"
)

// Pattern is the route that Handler serves.
const Pattern = "GET /docs/{file...}"

// policy allows a page to load only the site's own files.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// Handler serves the site below /docs/. The site is rendered at the first request.
func Handler(source fs.FS, failed func(error)) http.Handler {
	render := sync.OnceValue(func() *Site {
		s, err := Render(source)
		if err != nil {
			failed(err)
			return &Site{}
		}
		return s
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("file")
		if name == "" {
			name = "index.html"
		}
		content := render().File(name)
		if content == nil {
			http.NotFound(w, r)
			return
		}
		sum := sha256.Sum256(content)
		etag := `"` + hex.EncodeToString(sum[:8]) + `"`
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache") // browsers must check whether their copy is current
		h.Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		h.Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
		_, _ = w.Write(content) // the client may have gone
	})
}
