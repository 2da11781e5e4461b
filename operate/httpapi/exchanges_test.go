package httpapi

import (
	_ "embed"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"broker/frontends/frontendtest"
)

//go:embed openapi.json
var suiteDocument []byte

// suiteRoutes are all routes of the API.
func suiteRoutes(t *testing.T) (routes []string) {
	t.Helper()
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(suiteDocument, &document); err != nil {
		t.Fatal(err)
	}
	for path, methods := range document.Paths {
		for method := range methods {
			routes = append(routes, strings.ToUpper(method)+" "+strings.TrimPrefix(path, apiPath))
		}
	}
	return routes
}

// suiteExchanges are those of the shared suite.
func suiteExchanges() (all []frontendtest.Exchange) {
	add := func(route, path, body string) *frontendtest.Exchange {
		method, pattern, _ := strings.Cut(route, " ")
		if path == "" {
			path = pattern
		}
		all = append(all, frontendtest.Exchange{
			Command: route, Send: string(frontendtest.HTTPRequest(method, apiPath+path, body)),
		})
		return &all[len(all)-1]
	}
	// What GET /drain says is not stored, and GET /events begins with a header only.
	for _, route := range []string{
		"GET /audit", "GET /backup", "GET /batches", "GET /cluster", "GET /drain", "GET /events", "GET /finished-jobs",
		"GET /histograms", "GET /jobs", "GET /limits", "GET /marks", "GET /operations", "GET /policies", "GET /queues",
		"GET /schedules", "GET /series", "GET /settings", "GET /storage", "GET /summary", "GET /workers",
		"POST /reload", "POST /resume", "POST /storage/check", "POST /workers/quiet", "POST /workers/terminate",
	} {
		add(route, "", "").Early = route == "GET /drain" || route == "GET /events"
	}
	for _, e := range [][3]string{
		{"POST /backup", "", `{"path":"copy"}`},
		{"POST /batches", "", `{"description":"d"}`},
		{"GET /batches/{id}", "/batches/9", ""},
		{"POST /batches/{id}/commit", "/batches/9/commit", ""},
		{"POST /batches/{id}/reopen", "/batches/9/reopen", ""},
		{"POST /cluster/add", "", `{"name":"n4","address":"localhost:1"}`},
		{"POST /cluster/remove", "", `{"name":"n4"}`},
		{"POST /cluster/transfer", "", `{"name":"n4"}`},
		{"POST /drain", "", `{}`},
		{"POST /job-actions", "", `{"action":"delete","ids":["job-1"]}`},
		{"POST /jobs", "", `{"queue":"suite"}`},
		{"POST /jobs", "", `{"queue":"suite","id":"job-1"}`},
		{"DELETE /jobs/{id}", "/jobs/job-1", ""},
		{"DELETE /jobs/{id}", "/jobs/none", ""},
		{"GET /jobs/{id}", "/jobs/job-1", ""},
		{"GET /jobs/{id}", "/jobs/none", ""},
		{"PATCH /jobs/{id}", "/jobs/job-1", `{"priority":7}`},
		{"GET /jobs/{id}/log", "/jobs/job-1/log", ""},
		{"POST /lease", "", `{"queues":["suite"]}`},
		{"POST /leases", "", `{"queues":["suite"],"max":5}`},
		{"DELETE /limits", "/limits?queue=suite", ""},
		{"PUT /limits", "", `{"queue":"suite","leased":5}`},
		{"POST /marks", "", `{"text":"deploy"}`},
		{"DELETE /marks/{id}", "/marks/mark-1", ""},
		{"POST /audit/{number}/undo", "/audit/9/undo", ""},
		{"POST /operations/{id}/undo", "/operations/9/undo", ""},
		{"DELETE /operations/{id}", "/operations/9", ""},
		{"GET /operations/{id}", "/operations/9", ""},
		{"DELETE /queues/{name}", "/queues/suite", ""},
		{"GET /queues/{name}", "/queues/suite", ""},
		{"GET /queues/{name}/keys", "/queues/suite/keys", ""},
		{"PATCH /queues/{name}", "/queues/suite", `{"paused":true}`},
		{"POST /queues/{name}/clear", "/queues/suite/clear", `{}`},
		{"POST /queues/{name}/lease", "/queues/suite/lease", `{}`},
		{"POST /schedules", "", `{"name":"s","every_s":60,"job":{"queue":"suite"}}`},
		{"DELETE /schedules/{name}", "/schedules/s", ""},
		{"GET /schedules/{name}", "/schedules/s", ""},
		{"PATCH /schedules/{name}", "/schedules/s", `{"paused":true}`},
		{"PUT /schedules/{name}", "/schedules/s", `{"every_s":60,"job":{"queue":"suite"}}`},
		{"POST /schedules/{name}/pause", "/schedules/s/pause", ""},
		{"POST /schedules/{name}/resume", "/schedules/s/resume", ""},
		{"POST /schedules/{name}/run", "/schedules/s/run", ""},
		{"GET /types/{name}", "/types/t", ""},
		{"PATCH /types/{name}", "/types/t", `{}`},
		{"DELETE /workers/{id}", "/workers/w", ""},
		{"POST /workers/{id}/quiet", "/workers/w/quiet", ""},
		{"POST /workers/{id}/terminate", "/workers/w/terminate", ""},
		{"GET /workflows/{id}", "/workflows/job-1", ""},
	} {
		add(e[0], e[1], e[2])
	}
	for _, verb := range []string{"complete", "fail", "heartbeat", "log", "progress", "release"} {
		body := map[string]string{
			"log": `{"lines":[{"text":"x"}]}`, "progress": `{"progress":5}`, "release": "",
		}
		text, special := body[verb]
		if !special {
			text = "{}"
		}
		leased(add("POST /leases/{token}/"+verb, "/leases/TOKEN/"+verb, text))
		add("POST /leases/{token}/"+verb, "/leases/none/"+verb, text)
	}
	for _, verb := range []string{"complete", "fail", "heartbeat", "release"} {
		leased(add("POST /leases/"+verb, "", `{"leases":[{"lease":"TOKEN"}]}`))
	}
	return all
}

var leaseInReply = regexp.MustCompile(`"lease":"([^"]+)"`)

// leased makes an exchange about a job that the client has leased before; its request names the lease TOKEN.
func leased(e *frontendtest.Exchange) {
	send := e.Send
	e.Before = string(frontendtest.HTTPRequest("POST", apiPath+"/queues/suite/lease", "{}"))
	e.Fill = func(before []byte) string {
		method, rest, _ := strings.Cut(send, " ")
		path, _, _ := strings.Cut(rest, " ")
		_, body, _ := strings.Cut(rest, "\r\n\r\n")
		token := string(leaseInReply.FindSubmatch(before)[1])
		return string(frontendtest.HTTPRequest(method, strings.ReplaceAll(path, "TOKEN", token),
			strings.ReplaceAll(body, "TOKEN", token)))
	}
}
