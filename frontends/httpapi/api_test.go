package httpapi

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/frontends/access"
	"broker/frontends/service"
)

// apiFixture is the API on a real engine.
type apiFixture struct {
	t      *testing.T
	clock  *coretest.Clock
	engine *engine.Engine
	server *Server
	url    string
	client core.ClientID
	header http.Header // of every request
}

// setupAPI opens an engine whose timers fire only when the test advances the clock.
func setupAPI(t *testing.T, o Options) *apiFixture {
	t.Helper()
	f := &apiFixture{t: t, clock: coretest.NewClock(), header: make(http.Header)}
	e, err := engine.Open(engine.Options{Dir: "data", FS: engine.MemoryFS(), Clock: f.clock, Seed: 1, ManualTimers: true})
	if err != nil {
		t.Fatal(err)
	}
	f.engine = e
	s, err := service.New(service.Options{
		Broker: e, Random: func(b []byte) { _, _ = rand.Read(b) }, // never fails
		Handles: core.NewHandleFormat("H:here"),
	})
	if err != nil {
		t.Fatal(err)
	}
	f.client = e.Open(core.ClientOptions{Protocol: core.Gearman, Wake: func() {}})
	o.Log, o.Now = zerolog.Nop(), f.clock.Now
	f.server = New(o)
	server := httptest.NewServer(f.server.HTTP().Handler)
	f.url = server.URL
	t.Cleanup(func() {
		server.Close()
		s.Close()
		if err := e.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	f.server.Ready(Backend{Broker: e, Service: s, Connections: func() map[string]Connections { return nil }})
	return f
}

// answer is a response.
type answer struct {
	t      *testing.T
	what   string
	status int
	header http.Header
	text   []byte
}

// call sends a request; body is JSON text, or a value that is made JSON.
func (f *apiFixture) call(method, path string, body any, change ...func(*http.Request)) answer {
	f.t.Helper()
	var text []byte
	switch b := body.(type) {
	case nil:
	case string:
		text = []byte(b)
	default:
		var err error
		if text, err = json.Marshal(b); err != nil {
			f.t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(f.t.Context(), method, f.url+path, bytes.NewReader(text))
	if err != nil {
		f.t.Fatal(err)
	}
	for name, values := range f.header {
		req.Header[name] = values
	}
	for _, c := range change {
		c(req)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // read to its end
	a := answer{t: f.t, what: method + " " + path, status: resp.StatusCode, header: resp.Header}
	if a.text, err = io.ReadAll(resp.Body); err != nil {
		f.t.Fatal(err)
	}
	return a
}

// want checks the status and returns the JSON object.
func (a answer) want(status int) map[string]any {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: %d %s, want %d", a.what, a.status, a.text, status)
	}
	if len(a.text) == 0 {
		return nil
	}
	var object map[string]any
	if err := json.Unmarshal(a.text, &object); err != nil {
		a.t.Fatalf("%s: %v: %s", a.what, err, a.text)
	}
	return object
}

// problem checks that the answer is a problem with that status and code.
func (a answer) problem(status int, code string) map[string]any {
	a.t.Helper()
	p := a.want(status)
	if got := a.header.Get("Content-Type"); got != problemType {
		a.t.Errorf("%s: content type %q", a.what, got)
	}
	if p["code"] != code || p["status"] != float64(status) || p["title"] != http.StatusText(status) || p["detail"] == "" {
		a.t.Errorf("%s: %s, want code %s", a.what, a.text, code)
	}
	return p
}

// push submits a job and returns its view.
func (f *apiFixture) push(job map[string]any) map[string]any {
	f.t.Helper()
	return f.call("POST", "/api/v1/jobs", job).want(201)
}

// leaseOne takes a job of the queue q and returns the token and the job.
func (f *apiFixture) leaseOne() (string, map[string]any) {
	f.t.Helper()
	l := f.call("POST", "/api/v1/queues/q/lease", "{}").want(200)
	return l["lease"].(string), l["job"].(map[string]any)
}

func (f *apiFixture) state(id any) any {
	f.t.Helper()
	return f.call("GET", "/api/v1/jobs/"+url.PathEscape(id.(string)), nil).want(200)["state"]
}

// advance lets time pass, and what is due happen.
func (f *apiFixture) advance(d time.Duration) {
	f.clock.Advance(d)
	f.engine.Tick()
}

func TestSubmittedJobIsShown(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	a := f.call("POST", "/api/v1/jobs", `{"queue": "mail", "type": "Welcome", "args": [1, "two"], "priority": 3, "max_fails": 2}`)
	job := a.want(201)
	for name, want := range map[string]any{
		"queue": "mail", "type": "Welcome", "state": "ready", "priority": 3.0, "origin": "http", "max_fails": 2.0, "attempts": 0.0,
	} {
		if job[name] != want {
			t.Errorf("%s is %v, want %v", name, job[name], want)
		}
	}
	if got := a.header.Get("Location"); got != "/api/v1/jobs/"+job["id"].(string) {
		t.Errorf("Location %q", got)
	}
	shown := f.call("GET", a.header.Get("Location"), nil).want(200)
	if fmt.Sprint(shown["args"]) != "[1 two]" || shown["body_bytes"] != float64(len(`[1, "two"]`)) {
		t.Errorf("shown %v", shown)
	}
}

func TestBodiesComeBackAsTheyWent(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for _, body := range []string{`"args":[]`, `"args":[{"a":null}]`, `"body":"plain"`, `"body":"[1]"`, `"body":""`, `"body_base64":"/wA="`} {
		job := f.call("POST", "/api/v1/jobs", `{"queue":"q",`+body+`}`).want(201)
		text := string(f.call("GET", "/api/v1/jobs/"+job["id"].(string), nil).text)
		if !strings.Contains(text, body) {
			t.Errorf("%s: %s", body, text)
		}
		_, leased := f.leaseOne()
		if again, _ := json.Marshal(leased); !strings.Contains(string(again), body) {
			t.Errorf("%s: leased as %s", body, again)
		}
	}
}

func TestBadSubmissionsNameTheField(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for body, field := range map[string]string{
		`{}`:                                           "body.queue",
		`{"queue":""}`:                                 "body.queue",
		`{"queue":7}`:                                  "body.queue",
		`{"queue":"q","args":{}}`:                      "body.args",
		`{"queue":"q","args":"x"}`:                     "body.args",
		`{"queue":"q","body":"a","args":[]}`:           "body.body",
		`{"queue":"q","body_base64":"*"}`:              "body.body_base64",
		`{"queue":"q","priority":"high"}`:              "body.priority",
		`{"queue":"q","priority":3000000000}`:          "body.priority",
		`{"queue":"q","colour":"red"}`:                 "body.colour",
		`{"queue":"q","run_at":"tomorrow"}`:            "body.run_at",
		`{"queue":"q","delay_s":-1}`:                   "body.delay_s",
		`{"queue":"q","lease_for_s":1e300}`:            "body.lease_for_s",
		`{"queue":"q","backoff":"linear"}`:             "body.backoff",
		`{"queue":"q","ephemeral":true}`:               "body.ephemeral",
		`{"queue":"q","after":["nothing"]}`:            "body.after[0]",
		`{"queue":"q","batch":"x"}`:                    "body.batch",
		`{"queue":"q","on_duplicate":"coalesce"}`:      "body.unique_key",
		`{"jobs":[{"queue":"q"},{"args":[]}]}`:         "body.jobs[1].queue",
		`{"queue":"q","jobs":[{"queue":"q"}]}`:         "body.jobs",
		`{"queue":"` + strings.Repeat("q", 513) + `"}`: "body.queue",
	} {
		p := f.call("POST", "/api/v1/jobs", body).problem(422, "invalid_request")
		errs, _ := p["errors"].([]any)
		if len(errs) == 0 || errs[0].(map[string]any)["location"] != field {
			t.Errorf("%.60s: %v, want the field %s", body, p["errors"], field)
		}
	}
	f.call("POST", "/api/v1/jobs", `{"queue":`).problem(400, "invalid_json")
	if jobs := f.call("GET", "/api/v1/jobs", nil).want(200)["jobs"].([]any); len(jobs) > 0 {
		t.Errorf("a refused submission left %v", jobs)
	}
}

func TestManyJobsAreOneCommitAndAllOrNone(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	var jobs []map[string]any
	for i := range 1000 {
		jobs = append(jobs, map[string]any{"queue": "q", "args": []int{i}})
	}
	before := f.engine.Committed()
	answered := f.call("POST", "/api/v1/jobs", map[string]any{"jobs": jobs}).want(201)["jobs"].([]any)
	// A batch that the engine opened for itself, such as that of the series, may be committed beside it.
	if len(answered) != 1000 || f.engine.Committed() > before+2 {
		t.Errorf("%d jobs in %d commits", len(answered), f.engine.Committed()-before)
	}
}

func TestAWorkerCompletesItsJobOnce(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	job := f.push(map[string]any{"queue": "q", "body": "x", "retain_for_s": 60})
	token, leased := f.leaseOne()
	if leased["id"] != job["id"] || leased["state"] != "leased" || leased["attempts"] != 1.0 {
		t.Errorf("leased %v", leased)
	}
	f.call("POST", "/api/v1/leases/"+token+"/progress", `{"numerator":1,"denominator":2,"text":"half"}`).want(204)
	shown := f.call("GET", "/api/v1/jobs/"+job["id"].(string), nil).want(200)
	if p := shown["progress"].(map[string]any); p["numerator"] != 1.0 || p["denominator"] != 2.0 || p["text"] != "half" {
		t.Errorf("progress %v", p)
	}
	f.call("POST", "/api/v1/leases/"+token+"/complete", `{"result":"all well"}`).want(204)
	shown = f.call("GET", "/api/v1/jobs/"+job["id"].(string), nil).want(200)
	if o := shown["outcome"].(map[string]any); o["success"] != true || o["result"] != "all well" {
		t.Errorf("outcome %v", o)
	}
	for _, verb := range []string{"complete", "fail", "progress", "heartbeat", "release"} {
		f.call("POST", "/api/v1/leases/"+token+"/"+verb, nil).problem(410, "lease_lost")
	}
}

func TestResultsAreTextOrJSON(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for body, want := range map[string]any{
		`{"result":"text"}`: "text", `{"result":{"a":[1]}}`: `{"a":[1]}`, `{"result":7}`: "7", `{"result":null}`: "", `{}`: "", ``: "",
	} {
		job := f.push(map[string]any{"queue": "q", "retain_for_s": 60})
		token, _ := f.leaseOne()
		f.call("POST", "/api/v1/leases/"+token+"/complete", body).want(204)
		o := f.call("GET", "/api/v1/jobs/"+job["id"].(string), nil).want(200)["outcome"].(map[string]any)
		if o["result"] != want {
			t.Errorf("%s: %v", body, o)
		}
	}
}

func TestALeaseThatRanOutIsLost(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{"queue": "q", "lease_for_s": 10})
	first, _ := f.leaseOne()
	f.advance(9 * time.Second)
	f.call("POST", "/api/v1/leases/"+first+"/heartbeat", nil).want(204)
	f.advance(9 * time.Second)
	f.call("POST", "/api/v1/leases/"+first+"/heartbeat", `{"extend_s":20}`).want(204)
	f.advance(19 * time.Second)
	f.call("POST", "/api/v1/leases/"+first+"/progress", nil).want(204)
	f.advance(10 * time.Second)
	f.call("POST", "/api/v1/leases/"+first+"/complete", nil).problem(410, "lease_lost")
	f.advance(time.Minute) // the retry's back-off
	second, leased := f.leaseOne()
	if leased["attempts"] != 2.0 {
		t.Errorf("second lease %v", leased)
	}
	f.call("POST", "/api/v1/leases/"+first+"/complete", nil).problem(410, "lease_lost")
	f.call("POST", "/api/v1/leases/"+second+"/complete", nil).want(204)
}

func TestTokensCannotBeGuessed(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{"queue": "q"})
	f.push(map[string]any{"queue": "q"})
	one, _ := f.leaseOne()
	two, _ := f.leaseOne()
	for _, token := range []string{"x", one[:20] + two[20:], one[:len(one)-1], one + "A", strings.ToLower(one)} {
		f.call("POST", "/api/v1/leases/"+token+"/complete", nil).problem(404, "invalid_lease")
	}
}

func TestFailuresRetryAndBury(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	job := f.push(map[string]any{"queue": "q", "max_fails": 2})
	token, _ := f.leaseOne()
	f.call("POST", "/api/v1/leases/"+token+"/fail", `{"error_class":"E","message":"m","backtrace":["a","b"],"retry_in_s":5}`).want(204)
	shown := f.call("GET", "/api/v1/jobs/"+job["id"].(string), nil).want(200)
	failure := shown["failure"].(map[string]any)
	if shown["state"] != "retrying" || failure["type"] != "E" || failure["message"] != "m" || fmt.Sprint(failure["backtrace"]) != "[a b]" || shown["run_at"] == nil {
		t.Errorf("after one failure: %v", shown)
	}
	f.call("POST", "/api/v1/queues/q/lease", nil).want(204)
	f.advance(5 * time.Second)
	token, _ = f.leaseOne()
	f.call("POST", "/api/v1/leases/"+token+"/fail", nil).want(204)
	if got := f.state(job["id"]); got != "dead" {
		t.Errorf("after two failures: %v", got)
	}
}

func TestReleasedJobIsReadyAgain(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{"queue": "q"})
	token, _ := f.leaseOne()
	f.call("POST", "/api/v1/leases/"+token+"/release", nil).want(204)
	if _, job := f.leaseOne(); job["attempts"] != 1.0 {
		t.Errorf("a lease given back counts: %v", job)
	}
}

func TestLeaseWaitsForAJob(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	got := make(chan answer, 1)
	go func() { got <- f.call("POST", "/api/v1/queues/q/lease?wait=1m", "{}") }()
	f.parked()
	job := f.push(map[string]any{"queue": "q"})
	a := <-got
	if l := a.want(200); l["job"].(map[string]any)["id"] != job["id"] {
		t.Errorf("leased %v", l)
	}
	go func() { got <- f.call("POST", "/api/v1/queues/q/lease?wait=60", nil) }()
	f.parked()
	f.advance(time.Minute)
	a = <-got
	a.want(204)
}

// parked waits until an HTTP client is there.
func (f *apiFixture) parked() {
	f.t.Helper()
	for f.clients() == 0 {
		select {
		case <-f.t.Context().Done():
			f.t.Fatal("no client is waiting")
		case <-time.After(time.Millisecond):
		}
	}
}

func TestALeaseOfAClientThatLeavesStaysReady(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for range 20 {
		req, err := http.NewRequestWithContext(f.t.Context(), "POST", f.url+"/api/v1/queues/q/lease?wait=1m", nil)
		if err != nil {
			t.Fatal(err)
		}
		conn := &http.Transport{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if resp, err := conn.RoundTrip(req); err == nil {
				_ = resp.Body.Close() // not read
			}
		}()
		f.parked()
		conn.CancelRequest(req) //nolint:staticcheck // the oldest way to leave
		<-done
		for f.clients() > 0 {
			time.Sleep(time.Millisecond) //nolint:forbidigo // the server's goroutine has no signal
		}
	}
	f.push(map[string]any{"queue": "q"})
	if _, job := f.leaseOne(); job["attempts"] != 1.0 {
		t.Errorf("somebody who had left got the job: %v", job)
	}
}

func (f *apiFixture) clients() int {
	for _, r := range f.engine.Do(f.client, []core.Op{&core.ReadStats{}}, nil) {
		if r.Stats != nil {
			return r.Stats.Clients[core.HTTP]
		}
	}
	return 0
}

func TestSubmissionWaitsForTheOutcome(t *testing.T) {
	t.Parallel()
	for _, ephemeral := range []bool{false, true} {
		f := setupAPI(t, Options{})
		got := make(chan answer, 1)
		go func() {
			got <- f.call("POST", "/api/v1/jobs?wait=10s", map[string]any{"queue": "q", "body": "in", "ephemeral": ephemeral})
		}()
		l := f.call("POST", "/api/v1/queues/q/lease?wait=10s", nil).want(200)
		f.call("POST", "/api/v1/leases/"+l["lease"].(string)+"/complete", `{"result":"out"}`).want(204)
		a := <-got
		job := a.want(201)
		if o := job["outcome"].(map[string]any); o["success"] != true || o["result"] != "out" || job["state"] != "done" {
			t.Errorf("ephemeral %v: %v", ephemeral, job)
		}
	}
}

func TestWithoutAnOutcomeInTimeTheJobIsShown(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	got := make(chan answer, 1)
	go func() { got <- f.call("POST", "/api/v1/jobs?wait=10s", `{"queue":"q"}`) }()
	f.parked()
	for f.call("GET", "/api/v1/jobs", nil).want(200)["jobs"].([]any) == nil {
	}
	f.advance(10 * time.Second)
	a := <-got
	if job := a.want(201); job["state"] != "ready" || job["outcome"] != nil {
		t.Errorf("%v", job)
	}
}

func TestBadWaits(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for _, wait := range []string{"x", "-1", "-1s", "11m", "1e9", "NaN", "601"} {
		f.call("POST", "/api/v1/queues/q/lease?wait="+wait, nil).problem(422, "invalid_request")
	}
}

func TestJobsAreNamedByKind(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	job := f.push(map[string]any{"queue": "q", "id": "order/1"})
	seq := fmt.Sprintf("%.0f", job["seq"])
	for _, name := range []string{"order/1", "id:order/1", "seq:" + seq, "H:here:" + seq, job["alias"].(string)} {
		if got := f.call("GET", "/api/v1/jobs/"+url.PathEscape(name), nil).want(200); got["seq"] != job["seq"] {
			t.Errorf("%s is %v", name, got)
		}
	}
	for _, name := range []string{seq, "0000" + seq, "H:there:" + seq, "order", "seq:", "seq:0" + seq, "seq:+" + seq} {
		if a := f.call("DELETE", "/api/v1/jobs/"+url.PathEscape(name), nil); a.status < 400 {
			t.Errorf("%s deletes a job", name)
		}
	}
	f.call("GET", "/api/v1/jobs/nothing", nil).problem(404, "job_not_found")
}

func TestDeleteHonoursIfMatch(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	a := f.call("POST", "/api/v1/jobs", `{"queue":"q"}`)
	path := "/api/v1/jobs/" + a.want(201)["id"].(string)
	f.leaseOne()
	ifMatch := func(etag string) func(*http.Request) { return func(r *http.Request) { r.Header.Set("If-Match", etag) } }
	f.call("DELETE", path, nil, ifMatch(a.header.Get("ETag"))).problem(412, "job_changed")
	f.call("DELETE", path, nil, ifMatch("seven")).problem(422, "invalid_request")
	now := f.call("GET", path, nil).header.Get("ETag")
	f.call("DELETE", path, nil, ifMatch(now)).want(204)
	f.call("GET", path, nil).problem(404, "job_not_found")
}

func TestQueuesAreListedChangedAndCleared(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for i, name := range []string{"a", "b", "b", "mail/out", "mail/in", "\xff"} {
		f.engine.Do(f.client, []core.Op{&core.Submit{Job: &core.Job{Queue: name, Origin: core.Gearman, Priority: int32(i)}}}, nil)
	}
	names := func(query string) (all []string) {
		for cursor, more := "", true; more; {
			page := f.call("GET", "/api/v1/queues?limit=2&"+query+"&cursor="+cursor, nil).want(200)
			for _, q := range page["queues"].([]any) {
				all = append(all, q.(map[string]any)["name"].(string))
			}
			cursor, more = page["cursor"].(string)
		}
		return all
	}
	for query, want := range map[string]string{
		"":                         "[a b mail/in mail/out \ufffd]",
		"sort=-name":               "[\ufffd mail/out mail/in b a]",
		"sort=-ready":              "[b a mail/in mail/out \ufffd]",
		"prefix=mail":              "[mail/in mail/out]",
		"search=in":                "[mail/in]",
		"search=in&sort=-ready":    "[mail/in]",
		"search=nothing&sort=dead": "[]",
	} {
		if got := fmt.Sprint(names(query)); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	f.call("GET", "/api/v1/queues?sort=size", nil).problem(422, "invalid_request")
	f.call("GET", "/api/v1/queues?limit=0", nil).problem(422, "invalid_request")
	f.call("GET", "/api/v1/queues?cursor=x", nil).problem(422, "invalid_request")
	f.call("GET", "/api/v1/queues/nothing", nil).problem(404, "queue_not_found")
	for _, path := range []string{"mail%2Fout", "%ff"} {
		q := f.call("PATCH", "/api/v1/queues/"+path, `{"paused":true}`).want(200)
		if q["paused"] != true {
			t.Errorf("%s: %v", path, q)
		}
		f.call("POST", "/api/v1/queues/"+path+"/lease", nil).want(204)
		f.call("PATCH", "/api/v1/queues/"+path, `{"paused":false,"max":{"high":1,"normal":1,"low":1}}`).want(200)
	}
	f.call("POST", "/api/v1/jobs", `{"queue":"mail/out"}`).problem(429, "queue_full")
	if got := f.call("POST", "/api/v1/queues/b/clear", `{"states":["ready","dead"]}`).want(200); got["removed"] != 2.0 {
		t.Errorf("cleared %v", got)
	}
	if got := f.call("DELETE", "/api/v1/queues/mail%2Fout", nil).want(200); got["removed"] != 1.0 {
		t.Errorf("removed %v", got)
	}
	audit := string(f.call("GET", "/api/v1/audit", nil).text)
	for _, action := range []string{"queue.pause", "queue.resume", "queue.limit", "queue.clear", "queue.remove"} {
		if !strings.Contains(audit, `"action":"`+action+`"`) {
			t.Errorf("%s is not in the audit log: %s", action, audit)
		}
	}
}

func TestPrincipalsDoWhatTheirRolesAllow(t *testing.T) {
	t.Parallel()
	control := &access.Control{}
	entry := func(name string, roles ...string) access.Entry {
		e := access.Entry{Name: name, TokenSHA256: access.HashToken(name)}
		for _, r := range roles {
			g, err := access.ParseGrant(r)
			if err != nil {
				t.Fatal(err)
			}
			e.Grants = append(e.Grants, g)
		}
		return e
	}
	control.Load([]access.Entry{
		entry("shop", "produce:mail.*"), entry("mailer", "consume:mail.*"), entry("viewer", "read:mail.*"),
		entry("operator", "operate"), entry("root", "admin"),
	})
	f := setupAPI(t, Options{Access: control})
	as := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	f.call("GET", "/api/v1/queues", nil).problem(401, "unauthorized")
	f.call("GET", "/api/v1/queues", nil, as("wrong")).problem(401, "unauthorized")
	f.call("GET", "/api/v1/queues", nil, func(r *http.Request) { r.Header.Set("Authorization", "root") }).problem(401, "unauthorized")
	f.call("GET", "/api/v1/queues", nil, func(r *http.Request) { r.SetBasicAuth("any", "root") }).want(200)

	job := f.call("POST", "/api/v1/jobs", `{"queue":"mail.out"}`, as("shop")).want(201)
	path := "/api/v1/jobs/" + job["id"].(string)
	f.call("POST", "/api/v1/jobs", `{"queue":"sms"}`, as("shop")).problem(403, "forbidden")
	f.call("POST", "/api/v1/jobs", `{"jobs":[{"queue":"mail.out"},{"queue":"sms"}]}`, as("shop")).problem(403, "forbidden")
	f.call("POST", "/api/v1/jobs", `{"queue":"mail.out"}`, as("viewer")).problem(403, "forbidden")
	f.call("POST", "/api/v1/jobs", `{"queue":"sms"}`, as("root")).want(201)
	f.call("GET", path, nil, as("viewer")).want(200)
	f.call("GET", path, nil, as("mailer")).problem(403, "forbidden")
	f.call("DELETE", path, nil, as("viewer")).problem(403, "forbidden")
	f.call("PATCH", "/api/v1/queues/mail.out", `{"paused":true}`, as("viewer")).problem(403, "forbidden")
	f.call("PATCH", "/api/v1/queues/mail.out", `{"paused":false}`, as("operator")).want(200)
	f.call("GET", "/api/v1/audit", nil, as("operator")).problem(403, "forbidden")
	f.call("POST", "/api/v1/queues/sms/lease", nil, as("mailer")).problem(403, "forbidden")
	token := f.call("POST", "/api/v1/queues/mail.out/lease", nil, as("mailer")).want(200)["lease"].(string)
	f.call("POST", "/api/v1/leases/"+token+"/complete", nil, as("shop")).problem(403, "forbidden")
	f.call("POST", "/api/v1/leases/"+token+"/complete", nil, as("mailer")).want(204)

	for _, list := range []string{"jobs", "queues"} {
		text := string(f.call("GET", "/api/v1/"+list, nil, as("viewer")).text)
		if strings.Contains(text, "sms") {
			t.Errorf("%s shows what viewer may not read: %s", list, text)
		}
	}
	if audit := f.call("GET", "/api/v1/audit", nil, as("root")).text; !bytes.Contains(audit, []byte(`"who":"operator"`)) {
		t.Errorf("audit %s", audit)
	}
}

func TestFailedLoginsAreSlowedDown(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{Password: "right"})
	login := func(password string) answer {
		return f.call("GET", "/api/v1/queues", nil, func(r *http.Request) { r.SetBasicAuth("", password) })
	}
	for range loginBurst {
		login("wrong").problem(401, "unauthorized")
	}
	a := login("right")
	a.problem(429, "too_many_failed_logins")
	if a.header.Get("Retry-After") != "4" {
		t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
	}
	f.clock.Advance(loginEvery)
	login("right").want(200)
	login("wrong").problem(401, "unauthorized")
	login("wrong").problem(429, "too_many_failed_logins")
}

// Audit entries, lease tokens and jobs are there after a restart.
func TestARestartKeepsTokensAndAudit(t *testing.T) {
	t.Parallel()
	fs, clk := engine.MemoryFS(), coretest.NewClock()
	open := func() (*engine.Engine, *service.Service) {
		e, err := engine.Open(engine.Options{Dir: "data", FS: fs, Clock: clk, ManualTimers: true})
		if err != nil {
			t.Fatal(err)
		}
		s, err := service.New(service.Options{Broker: e, Random: func(b []byte) { _, _ = rand.Read(b) }}) // never fails
		if err != nil {
			t.Fatal(err)
		}
		return e, s
	}
	caller := service.Caller{Principal: access.Everyone, Address: "192.0.2.1:7"}
	e, s := open()
	if _, err := s.Submit(t.Context(), caller, []service.Submission{{Queue: "q"}, {Queue: "r"}}, service.SubmitOptions{}); err != nil {
		t.Fatal(err)
	}
	paused := true
	if _, err := s.ChangeQueue(t.Context(), caller, "r", service.QueueChange{Paused: &paused}); err != nil {
		t.Fatal(err)
	}
	l, err := s.Lease(t.Context(), caller, service.LeaseOptions{Queues: []string{"q"}})
	if err != nil || l == nil {
		t.Fatal(l, err)
	}
	if err := e.Shutdown(); err != nil {
		t.Fatal(err)
	}
	e, s = open()
	if err := s.Heartbeat(t.Context(), caller, l.Token, 0); err != nil {
		t.Errorf("heartbeat: %v", err)
	}
	entries, err := s.Audit(caller, 0, 10)
	if err != nil || len(entries) != 1 || entries[0].Action != "queue.pause" || entries[0].Address != "192.0.2.1:7" {
		t.Errorf("audit %v, %v", entries, err)
	}
	if err := e.Shutdown(); err != nil {
		t.Fatal(err)
	}
}
