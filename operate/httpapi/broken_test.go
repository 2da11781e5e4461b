package httpapi

import (
	"strings"
	"testing"
)

func TestOnBrokenDecidesAboutDependents(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	first := f.push(map[string]any{"queue": "q"})["id"].(string)
	ids := map[string]string{}
	for _, word := range []string{"wait", "release", "fail", "drop"} {
		ids[word] = f.push(map[string]any{"queue": "later", "after": []string{first}, "on_broken": word})["id"].(string)
	}
	f.call("DELETE", "/api/v1/jobs/"+first, nil).want(204)
	for word, state := range map[string]string{"wait": "blocked", "release": "ready", "fail": "dead"} {
		if j := f.call("GET", "/api/v1/jobs/"+ids[word], nil).want(200); j["state"] != state {
			t.Errorf("with %s: %v, want %s", word, j["state"], state)
		}
	}
	f.call("GET", "/api/v1/jobs/"+ids["drop"], nil).problem(404, "job_not_found")
	failed := f.call("GET", "/api/v1/jobs/"+ids["fail"], nil).want(200)["failure"].(map[string]any)
	if failed["type"] != "DependencyFailed" || !strings.HasPrefix(failed["message"].(string), "job ") {
		t.Errorf("failure %v", failed)
	}
	for _, bad := range []string{
		`{"queue":"q","on_broken":"never"}`, `{"queue":"q","on_broken":"drop","ephemeral":true}`,
	} {
		f.call("POST", "/api/v1/jobs?wait=1", bad).problem(422, "invalid_request")
	}
}
