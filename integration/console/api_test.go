package console

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"broker/integration/harness"
)

// api sends a request to the HTTP API; it must succeed.
func api(t *testing.T, b *harness.Broker, method, path, body string) map[string]any {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+b.HTTP+"/api/v1"+path,
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth("", b.Password)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text := textOf(t, resp)
	answer := map[string]any{}
	if len(text) > 0 && json.Unmarshal([]byte(text), &answer) != nil || resp.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s %s", method, path, resp.Status, text)
	}
	return answer
}

// textOf reads the body of a response.
func textOf(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer func() { _ = resp.Body.Close() }() // read
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pushJob submits a job and returns its id.
func pushJob(t *testing.T, b *harness.Broker, format string, args ...any) string {
	t.Helper()
	id, ok := api(t, b, "POST", "/jobs", fmt.Sprintf(format, args...))["id"].(string)
	if !ok {
		t.Fatal("the answer has no id")
	}
	return id
}
