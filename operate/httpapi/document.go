package httpapi

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

// Document is the OpenAPI 3.1 document of the API, nil before the call of HTTP. A test proves that openapi.json is the same;
// run it with -update after a change.
func (s *Server) Document() []byte {
	if s.document == nil {
		return nil
	}
	return s.document()
}

// apiPage shows the document to people, without any other host's help.
//
//go:embed api.html
var apiPage []byte

// serveDocument serves the document, in 3.1 and for tools that only know 3.0, and the page that shows it. They contain
// nothing about this broker, so that everybody may read them. The documents are made when they are first asked for.
func (s *Server) serveDocument(mux *http.ServeMux, api huma.API) {
	s.document = sync.OnceValue(func() []byte { return must(document(api)) })
	older := sync.OnceValue(func() []byte { return must(api.OpenAPI().Downgrade()) })
	file := func(path, kind string, content func() []byte) {
		mux.HandleFunc("GET "+apiPath+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Cache-Control", "no-cache")
			w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
			_, _ = w.Write(content()) // the client has left: nobody to tell
		})
	}
	file("/openapi.json", "application/json", s.document)
	file("/openapi-3.0.json", "application/json", older)
	file("/docs", "text/html; charset=utf-8", func() []byte { return apiPage })
}

// must is a document that only depends on this package: no error is possible.
func must(document []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return document
}

// describeArgs says that args is an array, which its Go type, raw JSON, does not.
func describeArgs(api huma.API) {
	for _, schema := range api.OpenAPI().Components.Schemas.Map() {
		if args := schema.Properties["args"]; args != nil {
			args.Type, args.Items = huma.TypeArray, &huma.Schema{}
		}
	}
}

// document is what the handlers do, as the document says it.
func document(api huma.API) ([]byte, error) {
	text, err := json.MarshalIndent(api.OpenAPI(), "", "  ")
	return append(text, '\n'), err
}

// openAnswers lets answers get more members without breaking strict clients: only what requests carry is closed.
func openAnswers(api huma.API) {
	requests := make(map[string]bool)
	var mark func(s *huma.Schema)
	mark = func(s *huma.Schema) {
		if s == nil {
			return
		}
		if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok && !requests[name] {
			requests[name] = true
			mark(api.OpenAPI().Components.Schemas.Map()[name])
		}
		mark(s.Items)
		for _, p := range s.Properties {
			mark(p)
		}
	}
	for _, item := range api.OpenAPI().Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Patch, item.Put, item.Delete} {
			if op != nil && op.RequestBody != nil {
				for _, media := range op.RequestBody.Content {
					mark(media.Schema)
				}
			}
		}
	}
	for name, schema := range api.OpenAPI().Components.Schemas.Map() {
		if !requests[name] {
			schema.AdditionalProperties = nil
		}
	}
}
