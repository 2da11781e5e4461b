package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed static
var staticFiles embed.FS

// asset is an embedded file.
type asset struct {
	mime    string
	plain   []byte
	gzipped []byte
}

// assets are the embedded files by name. The name changes with the content, so that browsers may cache the files
// without limit.
type assets struct {
	byName map[string]asset  // console.1a2b3c4d.css
	named  map[string]string // console.css → console.1a2b3c4d.css
}

// scripts are served as one file: htmx initializes in a timer, and would miss an extension that arrives later.
var scripts = []string{"htmx.min.js", "hx-csp.min.js", "uPlot.min.js", worker, "console.js"}

// worker is the script that runs in a worker shared by all tabs, or in the page if the browser has no shared workers.
const worker = "live.js"

// embeddedAssets loads the files once for all consoles.
var embeddedAssets = sync.OnceValues(loadAssets)

func loadAssets() (*assets, error) {
	a := &assets{byName: map[string]asset{}, named: map[string]string{}}
	entries, err := staticFiles.ReadDir("static")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if path.Ext(entry.Name()) == ".js" && entry.Name() != worker {
			continue
		}
		content, err := staticFiles.ReadFile(path.Join("static", entry.Name()))
		if err != nil {
			return nil, err
		}
		if err := a.add(entry.Name(), content); err != nil {
			return nil, err
		}
	}
	var all bytes.Buffer
	for _, name := range scripts {
		content, err := staticFiles.ReadFile(path.Join("static", name))
		if err != nil {
			return nil, err
		}
		all.Write(content)
		all.WriteString("\n;\n")
	}
	return a, a.add("scripts.js", all.Bytes())
}

func (a *assets) add(file string, content []byte) error {
	sum := sha256.Sum256(content)
	ext := path.Ext(file)
	name := strings.TrimSuffix(file, ext) + "." + hex.EncodeToString(sum[:4]) + ext
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(content); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	a.byName[name] = asset{mime: mime.TypeByExtension(ext), plain: content, gzipped: b.Bytes()}
	a.named[file] = name
	return nil
}

// url returns the URL of a file. An unknown name is a mistake in a template.
func (a *assets) url(name string) (string, error) {
	hashed, ok := a.named[name]
	if !ok {
		return "", fmt.Errorf("no static file %s", name)
	}
	return "static/" + hashed, nil
}

// ServeHTTP serves GET /static/{name}.
func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	file, ok := a.byName[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", file.mime)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Vary", "Accept-Encoding")
	content := file.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		content = file.gzipped
	}
	h.Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content) // the client may have disconnected
}
