package httpapi

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"broker/core"
)

// Document is the OpenAPI 3.1 document of the API; nil before HTTP is called. A test compares it with openapi.json. Run
// the test with -update after a change.
func (s *Server) Document() []byte {
	if s.document == nil {
		return nil
	}
	return s.document()
}

// apiPage shows the document to people. It loads nothing from other hosts.
//
//go:embed api.html
var apiPage []byte

// serveDocument serves the document in OpenAPI 3.1, in 3.0 for older tools, and the page that shows it. They contain
// nothing about this broker, so they are public. The documents are made at the first request.
func (s *Server) serveDocument(mux *http.ServeMux, api huma.API) {
	s.document = sync.OnceValue(func() []byte { return must(document(api)) })
	older := sync.OnceValue(func() []byte { return must(api.OpenAPI().Downgrade()) })
	file := func(path, kind string, content func() []byte) {
		mux.HandleFunc("GET "+apiPath+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Cache-Control", "no-cache")
			w.Header().Set("Content-Security-Policy",
				"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
			_, _ = w.Write(content()) // fails only if the client has disconnected
		})
	}
	file("/openapi.json", "application/json", s.document)
	file("/openapi-3.0.json", "application/json", older)
	file("/docs", "text/html; charset=utf-8", func() []byte { return apiPage })
}

// must returns a document. It depends only on this package, so errors are impossible.
func must(document []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return document
}

// describeArgs declares args as an array. Its Go type is raw JSON, from which huma cannot derive that.
func describeArgs(api huma.API) {
	for _, schema := range api.OpenAPI().Components.Schemas.Map() {
		if args := schema.Properties["args"]; args != nil {
			args.Type, args.Items = huma.TypeArray, &huma.Schema{}
		}
	}
}

// clientProtocol is the name of a protocol that clients speak.
type clientProtocol string

// Schema implements huma.SchemaProvider.
func (clientProtocol) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Enum: protocolEnum(core.ProtocolNames())}
}

// describeProtocols lists the protocols where the service's types say so with enum:"protocol".
func describeProtocols(api huma.API) {
	all := protocolEnum(append([]string{core.Internal.String()}, core.ProtocolNames()...))
	for _, schema := range api.OpenAPI().Components.Schemas.Map() {
		for _, property := range schema.Properties {
			if len(property.Enum) == 1 && property.Enum[0] == "protocol" {
				property.Enum = all
			}
		}
	}
}

func protocolEnum(names []string) []any {
	values := make([]any, len(names))
	for i, name := range names {
		values[i] = name
	}
	return values
}

// document is the OpenAPI 3.1 document in JSON.
func document(api huma.API) ([]byte, error) {
	text, err := json.MarshalIndent(api.OpenAPI(), "", "  ")
	return append(text, '\n'), err
}

// openAnswers allows additional members in responses, so that new members do not break strict clients. Only requests
// are closed.
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
