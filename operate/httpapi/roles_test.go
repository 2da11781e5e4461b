package httpapi

import (
	"encoding/json"
	"flag"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

var updateRoles = flag.Bool("update-roles", false, "write the table of routes and roles into docs/roles.md")

// The lines around the table in docs/roles.md.
const (
	rolesStart = "<!-- roles: written by the test of package httpapi; run it with -update-roles after a change -->\n"
	rolesEnd   = "<!-- end of roles -->\n"
)

// routeBodies are valid requests. The test fails for a route that needs a body and has none here.
var routeBodies = map[string]string{
	"POST /backup": `{"dir":"/nowhere/b"}`, "POST /batches": `{}`, "POST /batches/{id}/commit": "",
	"POST /batches/{id}/reopen": "",
	"POST /cluster/add":         `{"id":"n","address":"h:1"}`, "POST /cluster/remove": `{"id":"n"}`,
	"POST /cluster/transfer": `{}`,
	"POST /drain":            `{}`, "POST /job-actions": `{"action":"retry","filter":{}}`,
	"POST /jobs":        `{"queue":"q"}`,
	"DELETE /jobs/{id}": "", "PATCH /jobs/{id}": `{"priority":1}`, "POST /lease": `{}`,
	"POST /leases": `{"queues":["q"]}`, "POST /leases/complete": `{"leases":[{"lease":"x"}]}`,
	"POST /leases/fail":      `{"leases":[{"lease":"x"}]}`,
	"POST /leases/heartbeat": `{"leases":[{"lease":"x"}]}`, "POST /leases/release": `{"leases":[{"lease":"x"}]}`,
	"POST /leases/{token}/complete": "", "POST /leases/{token}/fail": `{}`, "POST /leases/{token}/heartbeat": "",
	"POST /leases/{token}/log": `{"lines":["x"]}`, "POST /leases/{token}/progress": `{}`,
	"POST /leases/{token}/release": "", "DELETE /limits": "",
	"PUT /limits": `{"queue":"q","scope":"queue","concurrency":1000}`, "DELETE /operations/{id}": "",
	"POST /operations/{id}/undo": "", "POST /audit/{number}/undo": "",
	"DELETE /queues/{name}": "", "PATCH /queues/{name}": `{"paused":false}`,
	"POST /queues/{name}/clear": `{"states":["dead"]}`,
	"POST /marks":               `{"text":"deploy"}`, "DELETE /marks/{id}": "",
	"POST /queues/{name}/lease": "", "POST /reload": "", "POST /resume": "",
	"POST /schedules": `{"name":"new","every_s":3600,"job":{"queue":"q"}}`, "DELETE /schedules/{name}": "",
	"PATCH /schedules/{name}": `{"paused":true}`, "PUT /schedules/{name}": `{"every_s":3600,"job":{"queue":"q"}}`,
	"POST /schedules/{name}/pause": "", "POST /schedules/{name}/resume": "", "POST /schedules/{name}/run": "",
	"POST /storage/check": "", "PATCH /types/{name}": `{"policy":{"max_fails":3}}`, "POST /workers/quiet": "",
	"POST /workers/terminate": "", "DELETE /workers/{id}": "",
	"POST /workers/{id}/quiet": "", "POST /workers/{id}/terminate": "",
}

// TestDocsListTheRightsOfEachRole calls every route of the API as a principal with each role and with none. It compares
// the results with the table in docs/roles.md. It fails for a new route until the table lists it.
func TestDocsListTheRightsOfEachRole(t *testing.T) {
	t.Parallel()
	roles := []string{"read", "produce", "consume", "operate", "admin"}
	rights := map[string][]string{"none": nil}
	for _, r := range roles {
		rights[r] = []string{r}
	}
	f := setupAPI(t, Options{Access: principals(t, rights)})
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(f.server.Document(), &document); err != nil {
		t.Fatal(err)
	}
	table := "| route | no role | read | produce | consume | operate | admin |\n|---|---|---|---|---|---|---|\n"
	row := func(route string, ask func(token string) (status int)) {
		table += "| " + strings.Replace(route, " ", " `", 1) + "` |"
		for _, role := range append([]string{"none"}, roles...) {
			if ask(role) == http.StatusForbidden {
				table += " |"
			} else {
				table += " yes |"
			}
		}
		table += "\n"
	}
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(document.Paths[path])) {
			route := strings.ToUpper(method) + " " + strings.TrimPrefix(path, apiPath)
			if _, known := routeBodies[route]; !known && method != "get" {
				t.Errorf("%s is not in routeBodies", route)
			}
			if status := f.askRoute(route, ""); status != http.StatusUnauthorized {
				t.Errorf("%s without credentials: status %d", route, status)
			}
			row(route, func(token string) int { return f.askRoute(route, token) })
		}
	}
	compareRoles(t, table)
}

// TestListsOfAPrincipalWithoutRolesAreEmpty calls the routes that the table allows without a role: they list nothing.
func TestListsOfAPrincipalWithoutRolesAreEmpty(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{Access: principals(t, map[string][]string{"none": nil, "root": {"admin"}})})
	f.call("POST", apiPath+"/jobs", `{"queue":"q","unique_key":"u"}`, as("root")).want(201)
	f.call("PUT", apiPath+"/limits", `{"queue":"q","scope":"queue","concurrency":10}`, as("root")).want(200)
	f.call("PUT", apiPath+"/limits", `{"name":"l","queues":["q"],"concurrency":10}`, as("root")).want(200)
	f.call("PATCH", apiPath+"/queues/q", `{"policy":{"max_fails":3}}`, as("root")).want(200)
	for path, list := range map[string]string{
		"/jobs?count=true": "jobs", "/limits": "limits", "/policies": "policies",
	} {
		got := f.call("GET", apiPath+path, nil, as("none")).want(200)
		if rows, ok := got[list].([]any); !ok || len(rows) > 0 || got["count"] != nil && got["count"] != 0.0 {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// askRoute calls a route for existing objects, as the principal with the given token, and returns the status.
func (f *apiFixture) askRoute(route, token string) int {
	f.t.Helper()
	root := as("admin")
	f.call("POST", apiPath+"/resume", nil, root).want(200)
	job := f.call("POST", apiPath+"/jobs", `{"queue":"q"}`, root).want(201)["id"].(string)
	f.call("POST", apiPath+"/jobs", `{"queue":"leased"}`, root).want(201)
	lease := f.call("POST", apiPath+"/queues/leased/lease", nil, root).want(200)["lease"].(string)
	batch := f.call("POST", apiPath+"/batches", `{}`, root).want(201)["id"].(string)
	f.call("PUT", apiPath+"/schedules/s", `{"every_s":3600,"job":{"queue":"q"}}`, root)
	f.call("DELETE", apiPath+"/schedules/new", nil, root)
	operation := f.call("POST", apiPath+"/job-actions", `{"action":"retry","filter":{}}`, root).want(202)["id"].(string)
	mark := f.call("POST", apiPath+"/marks", `{"text":"deploy"}`, root).want(201)["id"].(string)
	method, path, _ := strings.Cut(route, " ")
	id := ""
	for prefix, value := range map[string]string{
		"/jobs/": job, "/workflows/": job, "/batches/": batch, "/operations/": operation, "/workers/": "1",
		"/marks/": mark,
	} {
		if strings.HasPrefix(path, prefix) {
			id = value
		}
	}
	name := "q"
	if strings.HasPrefix(path, "/schedules") {
		name = "s"
	}
	url := strings.NewReplacer("{id}", id, "{token}", lease, "{name}", name, "{number}", "1").Replace(path)
	if route == "GET /events" { // a stream: only its status is read
		r, err := http.NewRequestWithContext(f.t.Context(), method, f.url+apiPath+url+"?queue=q", http.NoBody)
		if err != nil {
			f.t.Fatal(err)
		}
		if token != "" {
			as(token)(r)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			f.t.Fatal(err)
		}
		_ = resp.Body.Close() // not read
		return resp.StatusCode
	}
	if route == "POST /lease" {
		url += "?queue=q"
	}
	if route == "DELETE /limits" {
		url += "?queue=q&scope=queue"
	}
	var body any
	if text := routeBodies[route]; text != "" {
		body = text
	}
	var change []func(*http.Request)
	if token != "" {
		change = append(change, as(token))
	}
	return f.call(method, apiPath+url, body, change...).status
}

// compareRoles compares the table in docs/roles.md with the results.
func compareRoles(t *testing.T, table string) {
	t.Helper()
	const path = "../../docs/roles.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(text), rolesStart)
	_, tail, foundEnd := strings.Cut(rest, rolesEnd)
	if !found || !foundEnd {
		t.Fatal("docs/roles.md has no markers for the table")
	}
	want := head + rolesStart + table + rolesEnd + tail
	switch {
	case want == string(text):
	case *updateRoles:
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table of docs/roles.md is out of date; it must be\n%s", table)
	}
}
