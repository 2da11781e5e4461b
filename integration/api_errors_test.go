package integration_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"broker/integration/harness"
)

// apiCase is a request that the API refuses.
type apiCase struct {
	name, method, path, body string
	header                   map[string]string

	status   int
	code     string
	location string // of the first error; empty: there is none
	says     string // a part of the detail
}

// ask sends the request, to a path below /api/v1 unless it starts with //.
func (c *apiCase) ask(t *testing.T, b *harness.Broker) (*http.Response, []byte) {
	t.Helper()
	path, other := strings.CutPrefix(c.path, "//")
	if !other {
		path = "api/v1" + c.path
	}
	req, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+b.HTTP+"/"+path, strings.NewReader(c.body))
	check(t, err)
	for name, value := range c.header {
		req.Header.Set(name, value)
	}
	if host := c.header["Host"]; host != "" {
		req.Host = host
	}
	resp, err := http.DefaultClient.Do(req)
	check(t, err)
	defer func() { _ = resp.Body.Close() }() // it was read
	text, err := io.ReadAll(resp.Body)
	check(t, err)
	return resp, text
}

// check sends the request and checks that the answer is the expected problem document.
func (c *apiCase) check(t *testing.T, b *harness.Broker) *http.Response {
	t.Helper()
	resp, text := c.ask(t, b)
	c.verify(t, resp, text)
	return resp
}

// verify checks that an answer is the expected problem document.
func (c *apiCase) verify(t *testing.T, resp *http.Response, text []byte) {
	t.Helper()
	var p struct {
		Title, Detail, Code string
		Status              int
		Errors              []struct{ Message, Location string }
	}
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatalf("%s: %d %s", c.name, resp.StatusCode, text)
	}
	location := ""
	if len(p.Errors) > 0 {
		location = p.Errors[0].Location
	}
	got := fmt.Sprintln(resp.StatusCode, p.Status, p.Title, p.Code, location, resp.Header.Get("Content-Type"))
	if want := fmt.Sprintln(c.status, c.status, http.StatusText(c.status), c.code, c.location,
		"application/problem+json"); got != want {
		t.Errorf("%s:\n got %swant %s%s", c.name, got, want, text)
	}
	if p.Detail == "" || !strings.Contains(p.Detail, c.says) {
		t.Errorf("%s: the detail %q does not say %q", c.name, p.Detail, c.says)
	}
}

func TestEveryErrorOfTheAPIIsAProblemDocument(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{Config: "[http]\nmax_body = \"100 KiB\"\n"})
	job := api(t, b, "POST", "/jobs", `{"queue": "q", "id": "one", "unique_key": "k"}`)
	api(t, b, "POST", "/jobs", `{"queue": "full"}`)
	api(t, b, "PATCH", "/queues/full", `{"max": {"normal": 1}}`)
	lease := api(t, b, "POST", "/queues/q/lease", "{}")["lease"].(string)
	api(t, b, "POST", "/leases/"+lease+"/release")
	text := strings.Repeat("a", 300_000)
	jobPath := "/jobs/" + job["id"].(string)
	for _, c := range []apiCase{
		{name: "unknown path", method: "GET", path: "/nothing", status: 404, code: "route_not_found"},
		{name: "unknown page", method: "GET", path: "//elsewhere", status: 404, code: "route_not_found"},
		{name: "unknown job", method: "GET", path: "/jobs/none", status: 404, code: "job_not_found"},
		{name: "unknown queue", method: "GET", path: "/queues/none", status: 404, code: "queue_not_found"},
		{name: "unknown batch", method: "GET", path: "/batches/none", status: 404, code: "batch_not_found"},
		{name: "unknown schedule", method: "GET", path: "/schedules/none", status: 404, code: "schedule_not_found"},
		{
			name: "unknown limit", method: "DELETE", path: "/limits?scope=queue&queue=none", status: 404,
			code: "limit_not_found",
		},
		{name: "unknown worker", method: "POST", path: "/workers/none/quiet", status: 404, code: "worker_not_found"},
		{name: "unknown operation", method: "GET", path: "/operations/op-9", status: 404, code: "operation_not_found"},
		{name: "wrong method", method: "PUT", path: "/jobs", status: 405, code: "method_not_allowed", says: "PUT"},
		{name: "wrong method outside", method: "DELETE", path: "//healthz", status: 405, code: "method_not_allowed"},
		{
			name: "malformed JSON", method: "POST", path: "/jobs", body: `{"queue":`, status: 400, code: "invalid_json",
			location: "body", says: "unexpected end of JSON",
		},
		{name: "no body", method: "POST", path: "/jobs", status: 400, code: "invalid_json", says: "body is required"},
		{
			name: "not an object", method: "POST", path: "/jobs", body: `[]`, status: 422, code: "invalid_request",
			location: "body", says: "expected object",
		},
		{
			name: "wrong type of a field", method: "POST", path: "/jobs", body: `{"queue":"q","priority":"high"}`,
			status: 422, code: "invalid_request", location: "body.priority", says: "expected integer",
		},
		{
			name: "wrong field of one of many", method: "POST", path: "/jobs",
			body: `{"jobs":[{"queue":"q"},{"queue":"q","run_at":"soon"}]}`, status: 422, code: "invalid_request",
			location: "body.jobs[1].run_at", says: "RFC 3339",
		},
		{
			name: "missing field of one of many", method: "POST", path: "/jobs", body: `{"jobs":[{"args":[]}]}`,
			status: 422, code: "invalid_request", location: "body.jobs[0].queue", says: "required",
		},
		{
			name: "unknown field", method: "POST", path: "/jobs", body: `{"queue":"q","prio":1}`, status: 422,
			code: "invalid_request", location: "body.prio",
		},
		{
			name: "wrong cursor", method: "GET", path: "/jobs?cursor=x", status: 422, code: "invalid_request",
			location: "query.cursor",
		},
		{
			name: "wrong cursor of queues", method: "GET", path: "/queues?cursor=x", status: 422,
			code: "invalid_request", location: "query.cursor",
		},
		{
			name: "limit of zero", method: "GET", path: "/jobs?limit=0", status: 422, code: "invalid_request",
			location: "query.limit", says: ">= 1",
		},
		{
			name: "limit too large", method: "GET", path: "/jobs?limit=1001", status: 422, code: "invalid_request",
			location: "query.limit", says: "<= 1000",
		},
		{
			name: "limit that is no number", method: "GET", path: "/jobs?limit=x", status: 422, code: "invalid_request",
			location: "query.limit",
		},
		{
			name: "unknown state", method: "GET", path: "/jobs?state=asleep", status: 422, code: "invalid_request",
			location: "query.state", says: "ready",
		},
		{
			name: "unknown order", method: "GET", path: "/jobs?sort=up", status: 422, code: "invalid_request",
			location: "query.sort", says: "created",
		},
		{
			name: "unknown parameter", method: "GET", path: "/jobs?colour=red", status: 422, code: "invalid_request",
			location: "query.colour",
		},
		{
			name: "unknown kind of event", method: "GET", path: "/events?kind=odd", status: 422,
			code: "invalid_request", location: "query.kind", says: "submitted",
		},
		{
			name: "wait too long", method: "POST", path: "/queues/q/lease?wait=11m", status: 422,
			code: "invalid_request", location: "query.wait", says: "10m",
		},
		{
			name: "wrong filter of an action", method: "POST", path: "/job-actions",
			body: `{"action":"retry","filter":{"state":"odd"}}`, status: 422, code: "invalid_request",
			location: "body.filter.state",
		},
		{
			name: "action without jobs", method: "POST", path: "/job-actions", body: `{"action":"retry"}`, status: 422,
			code: "invalid_request", location: "body.filter",
		},
		{
			name: "relative folder", method: "POST", path: "/backup", body: `{"dir":"x"}`, status: 422,
			code: "invalid_request", location: "body.dir", says: "absolute",
		},
		{
			name: "wrong content type", method: "POST", path: "/jobs", body: "<x/>",
			header: map[string]string{"Content-Type": "text/xml"}, status: 415, code: "unsupported_media_type",
			location: "body", says: "text/xml",
		},
		{
			name: "body too large", method: "POST", path: "/jobs", body: `{"queue":"q","body":"` + text + `"}`,
			status: 413, code: "body_too_large", says: "102400 bytes",
		},
		{
			name: "small body too large", method: "POST", path: "/queues/q/lease", body: text, status: 413,
			code: "body_too_large", says: "262144 bytes",
		},
		{
			name: "another site", method: "POST", path: "/jobs", body: `{"queue":"q"}`,
			header: map[string]string{"Origin": "http://elsewhere.example"}, status: 403, code: "cross_origin",
		},
		{
			name: "cross-site browser", method: "DELETE", path: "/queues/q",
			header: map[string]string{"Sec-Fetch-Site": "cross-site"}, status: 403, code: "cross_origin",
		},
		{
			name: "another host name", method: "GET", path: "/queues",
			header: map[string]string{"Host": "elsewhere.example"}, status: 403, code: "unknown_host",
		},
		{
			name: "id in use", method: "POST", path: "/jobs", body: `{"queue":"q","id":"one"}`, status: 409,
			code: "duplicate_id",
		},
		{
			name: "unique key in use", method: "POST", path: "/jobs", body: `{"queue":"q","unique_key":"k"}`,
			status: 409, code: "not_unique",
		},
		{
			name: "lease that is over", method: "POST", path: "/leases/" + lease + "/complete", status: 410,
			code: "lease_lost",
		},
		{
			name: "no lease token", method: "POST", path: "/leases/x/complete", status: 404, code: "invalid_lease",
			location: "path.token",
		},
		{
			name: "changed job", method: "PATCH", path: jobPath, body: `{"priority":1}`,
			header: map[string]string{"If-Match": `"77"`}, status: 412, code: "job_changed",
		},
		{
			name: "delete of a changed job", method: "DELETE", path: jobPath,
			header: map[string]string{"If-Match": `"77"`}, status: 412, code: "job_changed",
		},
		{
			name: "no ETag", method: "DELETE", path: jobPath, header: map[string]string{"If-Match": "seven"},
			status: 422, code: "invalid_request", location: "header.If-Match",
		},
		{name: "full queue", method: "POST", path: "/jobs", body: `{"queue":"full"}`, status: 429, code: "queue_full"},
	} {
		resp := c.check(t, b)
		if again := resp.Header.Get("Retry-After"); (again != "") != (c.status == 429) {
			t.Errorf("%s: Retry-After is %q", c.name, again)
		}
	}
	equal(t, "jobs after all that", len(api(t, b, "GET", "/jobs")["jobs"].([]any)), 2)

	api(t, b, "POST", "/drain", `{"reject_new_jobs": true}`)
	draining := apiCase{
		name: "draining", method: "POST", path: "/jobs", body: `{"queue":"q"}`, status: 503, code: "draining",
	}
	equal(t, "Retry-After", draining.check(t, b).Header.Get("Retry-After"), "1")
}

func TestMissingRightsAreProblemDocuments(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t,
		harness.Options{Config: fmt.Sprintf("[[principal]]\nname = \"shop\"\ntoken = \"sha256:%x\"\nroles = [\"produce:mail\"]\n",
			sha256.Sum256([]byte("shop-token")))})
	shop := map[string]string{"Authorization": "Bearer shop-token"}
	for _, c := range []apiCase{
		{name: "no credentials", method: "GET", path: "/jobs", status: 401, code: "unauthorized"},
		{
			name: "wrong token", method: "GET", path: "/jobs", header: map[string]string{"Authorization": "Bearer x"},
			status: 401, code: "unauthorized",
		},
		{name: "metrics", method: "GET", path: "//metrics", status: 401, code: "unauthorized"},
		{
			name: "another queue", method: "POST", path: "/jobs", body: `{"queue":"sms"}`, header: shop, status: 403,
			code: "forbidden", says: "principal shop lacks the role produce for queue sms",
		},
		{
			name: "another role", method: "POST", path: "/queues/mail/lease", header: shop, status: 403,
			code: "forbidden", says: "consume",
		},
		{
			name: "one of many", method: "POST", path: "/jobs", body: `{"jobs":[{"queue":"mail"},{"queue":"sms"}]}`,
			header: shop, status: 403, code: "forbidden",
		},
		{name: "audit", method: "GET", path: "/audit", header: shop, status: 403, code: "forbidden", says: "admin"},
		{
			name: "callback of a batch", method: "POST", path: "/batches", body: `{"success":{"queue":"sms"}}`,
			header: shop, status: 403, code: "forbidden",
		},
	} {
		resp := c.check(t, b)
		if ask := resp.Header.Get("WWW-Authenticate"); (ask != "") != (c.status == 401) {
			t.Errorf("%s: WWW-Authenticate is %q", c.name, ask)
		}
	}
	allowed := apiCase{method: "POST", path: "/jobs", body: `{"queue":"mail"}`, header: shop}
	if resp, text := allowed.ask(t, b); resp.StatusCode != 201 {
		t.Errorf("an allowed submission: %s", text)
	}
	guess := apiCase{
		name: "too many guesses", method: "GET", path: "/jobs", status: 429, code: "too_many_failed_logins",
		header: map[string]string{"Authorization": "Bearer guess"},
	}
	harness.Eventually(t, func() string { // one more guess is allowed every three seconds
		for range 30 {
			if resp, text := guess.ask(t, b); resp.StatusCode == http.StatusTooManyRequests {
				if guess.verify(t, resp, text); resp.Header.Get("Retry-After") == "" {
					t.Error("no Retry-After after too many guesses")
				}
				return ""
			}
		}
		return "guesses are not limited"
	})
}
