package integration_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"broker/integration/harness"
	"broker/integration/server"
)

func TestAClientGeneratedFromTheDocumentFinishesAJob(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	generator := harness.GoTool(t, "oapi-codegen")
	b := harness.Start(t, harness.Options{})
	root, err := server.Root()
	check(t, err)
	dir := t.TempDir()
	// The generator knows OpenAPI 3.0 only; the broker serves its document in that version too.
	document, code, overlay := filepath.Join(dir,
		"openapi.json"), filepath.Join(dir, "client.go"), filepath.Join(dir, "overlay.json")
	resp, err := http.Get("http://" + b.HTTP + "/api/v1/openapi-3.0.json")
	check(t, err)
	defer func() { _ = resp.Body.Close() }() // it was read
	text, err := io.ReadAll(resp.Body)
	check(t, err)
	check(t, os.WriteFile(document, text, 0o600))
	harness.Run(t, harness.Command{Argv: []string{
		generator, "-generate", "types,client,skip-prune", "-package", "main", "-o", code, document,
	}})
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(root, "integration", "clients", "generated", "client.go"): code,
	}})
	check(t, err)
	check(t, os.WriteFile(overlay, replaced, 0o600))
	program := filepath.Join(dir, "client")
	harness.Run(t, harness.Command{Argv: []string{
		"go", "build", "-C", filepath.Join(root, "integration"), "-tags", "generated", "-overlay", overlay, "-o",
		program, "./clients/generated",
	}})
	out := harness.Run(t, harness.Command{Argv: []string{program, "http://" + b.HTTP}})
	if !strings.HasPrefix(out, "finished ") {
		t.Errorf("the client says %q", out)
	}
}

func TestAPublishedValidatorAcceptsTheDocument(t *testing.T) {
	t.Parallel()
	harness.NeedNode(t)
	root, err := server.Root()
	check(t, err)
	out := harness.Run(t, harness.Command{Argv: []string{
		"node", harness.Script(t, "node/validate.js"), filepath.Join(root, "operate", "httpapi", "openapi.json"),
	}})
	equal(t, "the validator says", strings.TrimSpace(out), "valid 3.1.0")
}
