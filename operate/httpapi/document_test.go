package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

var update = flag.Bool("update", false, "write openapi.json anew")

func TestOpenAPIDocumentIsUpToDate(t *testing.T) {
	t.Parallel()
	api := New(Options{Log: zerolog.Nop()}).newAPI(http.NewServeMux())
	got, err := document(api)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("openapi.json", got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	kept, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, kept) {
		t.Error(
			"openapi.json is not what the handlers do: look at the difference after go test ./operate/httpapi -run Document -update",
		)
	}
}

// Every operation has an id, and every error response is a problem.
func TestDocumentIsComplete(t *testing.T) {
	t.Parallel()
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string
			Responses   map[string]struct{ Content map[string]any }
		}
	}
	s := New(Options{Log: zerolog.Nop()})
	s.HTTP()
	if err := json.Unmarshal(s.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Errorf("version %q", doc.OpenAPI)
	}
	seen := make(map[string]bool)
	for path, item := range doc.Paths {
		for verb, op := range item {
			if op.OperationID == "" || seen[op.OperationID] {
				t.Errorf("%s %s: operation id %q", verb, path, op.OperationID)
			}
			seen[op.OperationID] = true
			for status, r := range op.Responses {
				if status >= "400" && r.Content[problemType] == nil {
					t.Errorf("%s %s: %s is not a problem", verb, path, status)
				}
			}
		}
	}
}

func TestDocumentIsServed(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{Password: "p"})
	if v := f.call("GET", "/api/v1/openapi.json", nil).want(200)["openapi"]; v != "3.1.0" {
		t.Errorf("version %v", v)
	}
	if v, _ := f.call("GET", "/api/v1/openapi-3.0.json",
		nil).want(200)["openapi"].(string); !strings.HasPrefix(v, "3.0") {
		t.Errorf("version %v", v)
	}
	page := f.call("GET", "/api/v1/docs", nil)
	if page.status != 200 || !bytes.HasPrefix(page.text, []byte("<!doctype html>")) ||
		bytes.Contains(page.text, []byte("://")) {
		t.Errorf("the page is not one, or needs another host: %d", page.status)
	}
}
