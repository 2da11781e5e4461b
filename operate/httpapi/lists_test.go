package httpapi

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/operate/service"
)

// submit submits a job like a client of the protocol of its origin, and returns its Seq.
func (f *apiFixture) submit(j *core.Job) uint64 {
	f.t.Helper()
	r := f.engine.Do(f.client, []core.Op{&core.Submit{Job: j}}, nil)
	if len(r) != 1 || r[0].Kind != core.Submitted {
		f.t.Fatalf("submit: %+v", r)
	}
	return r[0].Seq
}

// apply applies operations that must be accepted.
func (f *apiFixture) apply(ops ...core.Op) {
	f.t.Helper()
	for i, r := range f.engine.Do(f.client, ops, nil) {
		if r.Kind == core.Failed {
			f.t.Fatalf("%T: %v", ops[i], r.Err)
		}
	}
}

// stages creates a job in each state, in a queue named after the state. It returns their Seqs.
func (f *apiFixture) stages() map[string]uint64 {
	f.t.Helper()
	job := func(queue string, change func(*core.Job)) uint64 {
		j := &core.Job{
			Queue: queue, Origin: core.Faktory, MaxFails: 3, Backoff: core.BackoffFaktory,
			Exhausted: core.ExhaustedBury,
			DeadFor:   time.Hour,
		}
		change(j)
		return f.submit(j)
	}
	later := f.engine.Now().Add(time.Hour)
	all := map[string]uint64{
		"scheduled": job("scheduled", func(j *core.Job) { j.ReadyAt = later }),
		"ready":     job("ready", func(*core.Job) {}),
		"leased":    job("leased", func(*core.Job) {}),
		"retrying":  job("retrying", func(*core.Job) {}),
		"dead":      job("dead", func(j *core.Job) { j.MaxFails = 1 }),
		"done":      job("done", func(j *core.Job) { j.RetainUntil = later }),
	}
	all["blocked"] = job("blocked", func(j *core.Job) { j.After = []uint64{all["scheduled"]} })
	for _, queue := range []string{"leased", "retrying", "dead", "done"} {
		f.apply(&core.Lease{Queues: []string{queue}, Holder: core.HeldByWorker, Worker: "w"})
	}
	failure := func() *core.Failure { return &core.Failure{Type: "Timeout", Message: "no answer"} }
	f.apply(
		&core.Fail{Ref: core.Ref{Seq: all["retrying"]}, Authority: core.ByLeased, Failure: failure()},
		&core.Fail{Ref: core.Ref{Seq: all["dead"]}, Authority: core.ByLeased, Failure: failure()},
		&core.Complete{Ref: core.Ref{Seq: all["done"]}, Authority: core.ByLeased, Result: []byte("fine")},
	)
	return all
}

// seqs lists the Seqs of the jobs of a list, page by page.
func (f *apiFixture) seqs(query string, limit int) string {
	f.t.Helper()
	all := []int{}
	for cursor, more := "", true; more; {
		page := f.call("GET", fmt.Sprintf("/api/v1/jobs?limit=%d&%s&cursor=%s", limit, query, url.QueryEscape(cursor)),
			nil).want(200)
		for _, j := range page["jobs"].([]any) {
			all = append(all, int(j.(map[string]any)["seq"].(float64)))
		}
		cursor, more = page["cursor"].(string)
		if len(all) > 10_000 {
			f.t.Fatalf("%s: no end", query)
		}
	}
	return fmt.Sprint(all)
}

// TestJobsWithoutAnErrorClassAreFound: the value none finds jobs without a class, and not jobs whose class is called
// none.
func TestJobsWithoutAnErrorClassAreFound(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	dead := map[string]uint64{}
	for _, class := range []string{"", "none", "Timeout", `"quoted"`} {
		dead[class] = f.submit(&core.Job{Queue: "q", Origin: core.Gearman, Exhausted: core.ExhaustedBury})
		f.apply(&core.Fail{
			Ref: core.Ref{Seq: dead[class]}, Authority: core.ByAnyone, Failure: &core.Failure{Type: class},
		})
	}
	for class, seq := range dead {
		for _, name := range []string{"error_class", "failure_group"} {
			query := name + "=" + url.QueryEscape(service.FilterValue(class))
			if got := f.seqs(query+"&state=dead", 10); got != fmt.Sprint([]uint64{seq}) {
				t.Errorf("%s: %s, want %d", query, got, seq)
			}
			filter := map[string]any{
				"action": "delete", "filter": map[string]any{name: service.FilterValue(class)}, "dry_run": true,
			}
			if n := f.call("POST", "/api/v1/job-actions", filter).want(200)["matched"]; n != 1.0 {
				t.Errorf("an action on %s matches %v jobs", query, n)
			}
		}
	}
}

func TestJobsAreFoundByEveryFilter(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	all := f.stages()
	tagged := f.push(map[string]any{
		"queue": "mail", "type": "Welcome", "tags": []string{"a", "b"}, "priority": 7, "unique_key": "k",
		"id": "order-1", "body": "needle",
	})
	seq := uint64(tagged["seq"].(float64))
	for query, want := range map[string]uint64{
		"state=scheduled": all["scheduled"], "state=blocked": all["blocked"], "state=leased": all["leased"],
		"state=retrying": all["retrying"], "state=dead": all["dead"], "state=done": all["done"],
		"queue=ready":                   all["ready"],
		"queue=ready&state=ready&type=": all["ready"], "queue_prefix=rea": all["ready"], "type=Welcome": seq,
		"origin=http": seq,
		"tag=a&tag=b": seq, "min_priority=7": seq, "unique_key=k": seq, "holds_unique_key=true": seq,
		"id_prefix=order": seq, "text=welcome": seq,
		"body_text=needle": seq, "worker=w": all["leased"], "error_class=Timeout&state=dead": all["dead"],
		"created_from=2030-01-01T00:00:00Z&created_to=2030-01-01T00:00:01Z&queue=mail": seq,
	} {
		if got := f.seqs(query, 10); got != fmt.Sprint([]uint64{want}) {
			t.Errorf("%s: %s, want %d", query, got, want)
		}
	}
	for query, want := range map[string][]uint64{
		"state=dead,retrying":               {all["retrying"], all["dead"]},
		"state=dead&state=retrying":         {all["retrying"], all["dead"]},
		"queue=dead&queue=mail":             {all["dead"], seq},
		"state=dead,retrying&sort=-created": {all["dead"], all["retrying"]},
		"tag=a&tag=c":                       {},
		"max_priority=-1":                   {},
	} {
		for _, limit := range []int{1, 100} {
			if got := f.seqs(query, limit); got != fmt.Sprint(want) {
				t.Errorf("%s: %s, want %v", query, got, want)
			}
		}
	}
	page := f.call("GET", "/api/v1/jobs?count=true&limit=2", nil).want(200)
	if page["count"] != 8.0 || page["count_exact"] != true {
		t.Errorf("count %v %v", page["count"], page["count_exact"])
	}
	for _, bad := range []string{
		"state=odd", "origin=odd", "limit=0", "limit=1001", "cursor=odd", "sort=size", "colour=red",
		"created_from=today",
		"min_priority=x", "min_priority=9999999999", "sort=died&state=ready", "batch=x", "parent=nothing",
	} {
		f.call("GET", "/api/v1/jobs?"+bad, nil).problem(422, "invalid_request")
	}
}

func TestListsHaveTheirOrders(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	now := f.engine.Now()
	for _, priority := range []int64{0, -1, 5, 0} {
		f.submit(&core.Job{Queue: "ready", Origin: core.Workq, Priority: priority})
	}
	for _, hours := range []int{3, 1, 2} {
		f.submit(&core.Job{Queue: "later", Origin: core.Faktory, ReadyAt: now.Add(time.Duration(hours) * time.Hour)})
	}
	for query, want := range map[string]string{
		"queue=ready&sort=queue": "[3 1 4 2]",
		"queue=later&sort=due":   "[6 7 5]",
		"queue=later&sort=-due":  "[5 7 6]",
		"queue=ready":            "[1 2 3 4]",
		"sort=-created":          "[7 6 5 4 3 2 1]",
		"":                       "[1 2 3 4 5 6 7]",
	} {
		for _, limit := range []int{1, 2, 1000} {
			if got := f.seqs(query, limit); got != want {
				t.Errorf("%s by %d: %s, want %s", query, limit, got, want)
			}
		}
	}
}

func TestListsLeaveBodiesOut(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.submit(&core.Job{Queue: "q", Origin: core.Gearman, Body: []byte(strings.Repeat("x", 1<<20))})
	a := f.call("GET", "/api/v1/jobs", nil)
	job := a.want(200)["jobs"].([]any)[0].(map[string]any)
	if len(a.text) > 2000 || job["body_bytes"] != float64(1<<20) || job["body"] != nil {
		t.Errorf("%d bytes: %.300s", len(a.text), a.text)
	}
}

func TestLargeBodiesAreCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	seq := f.submit(&core.Job{
		Queue: "q", Origin: core.Gearman, Body: []byte("x" + strings.Repeat("ü", maxShownTest/2)),
	})
	job := f.call("GET", fmt.Sprintf("/api/v1/jobs/seq:%d", seq), nil).want(200)
	if text, _ := job["body"].(string); len(text) != maxShownTest-1 || job["body_truncated"] != true ||
		job["body_base64"] != nil {
		t.Errorf("%d bytes are shown, truncated %v", len(text), job["body_truncated"])
	}
}

// maxShownTest is the maximum part of a body that is shown.
const maxShownTest = 1 << 20

func TestQueueNamesOfAnyBytesCanBeAddressed(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for _, name := range []string{"a/b", "a b", "a?b", "ä", "lease", "a%2Fb", "\xff", ".", ".."} {
		f.submit(&core.Job{Queue: name, Origin: core.Gearman})
		path := "/api/v1/queues/" + strings.ReplaceAll(url.PathEscape(name), ".", "%2E")
		if got := f.call("GET", path, nil).want(200)["ready"]; got != 1.0 {
			t.Errorf("%q: %v", name, got)
		}
		if got := f.seqs("queue="+url.QueryEscape(name), 10); strings.Count(got, " ") != 0 || got == "[]" {
			t.Errorf("%q: %s", name, got)
		}
		f.call("POST", path+"/lease", nil).want(200)
	}
}

// The state after an action, for each state before it; empty: the action does not apply.
func TestStateAfterEachActionOnEachState(t *testing.T) {
	t.Parallel()
	for action, ends := range map[string]map[string]string{
		"retry": {
			"scheduled": "ready", "retrying": "ready", "blocked": "ready", "dead": "ready", "ready": "", "leased": "",
			"done": "",
		},
		"kill": {
			"scheduled": "dead", "retrying": "dead", "blocked": "dead", "dead": "dead", "ready": "dead",
			"leased": "dead", "done": "",
		},
		"cancel": {
			"scheduled": "gone", "retrying": "gone", "blocked": "gone", "dead": "", "ready": "gone", "leased": "gone",
			"done": "",
		},
		"delete": {
			"scheduled": "gone", "retrying": "gone", "blocked": "gone", "dead": "gone", "ready": "gone",
			"leased": "gone", "done": "gone",
		},
	} {
		for state, end := range ends {
			for _, by := range []string{"ids", "filter"} {
				f := setupAPI(t, Options{})
				path := fmt.Sprintf("/api/v1/jobs/seq:%d", f.stages()[state])
				body := map[string]any{"action": action, "ids": []string{strings.TrimPrefix(path, "/api/v1/jobs/")}}
				if by == "filter" {
					body = map[string]any{"action": action, "filter": map[string]any{"queue": state}}
				}
				op := f.call("POST", "/api/v1/job-actions?wait=1m", body).want(202)
				changed, want := 1.0, end
				if end == "" {
					changed, want = 0, state
				}
				if op["state"] != "done" || op["changed"] != changed || op["matched"] != 1.0 {
					t.Errorf("%s of a %s job by %s: %v", action, state, by, op)
				}
				got := "gone"
				if a := f.call("GET", path, nil); a.status == 200 {
					got = a.want(200)["state"].(string)
				}
				if got != want {
					t.Errorf("%s of a %s job by %s: it is %s, want %s", action, state, by, got, want)
				}
			}
		}
	}
}

func TestDryRunsChangeNothing(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for range 1234 {
		f.submit(&core.Job{Queue: "q", Origin: core.Gearman})
	}
	f.submit(&core.Job{Queue: "other", Origin: core.Gearman})
	body := func(filter string) string { return `{"action":"delete","dry_run":true,` + filter + `}` }
	for filter, want := range map[string]float64{
		`"filter":{"queue":"q"}`: 1234, `"filter":{}`: 1235, `"filter":{"queue":["q","other"],"state":["ready"]}`: 1235,
		`"filter":{"queue":"nothing"}`: 0, `"filter":{"type":"q","state":"ready","text":"q"}`: 1234,
		`"ids":["seq:1","seq:2"]`: 2,
	} {
		p := f.call("POST", "/api/v1/job-actions", body(filter)).want(200)
		if examples := p["examples"].([]any); p["matched"] != want || len(examples) != int(min(want, 10)) {
			t.Errorf("%s: matched %v, %d examples", filter, p["matched"], len(examples))
		}
	}
	if n := f.call("GET", "/api/v1/jobs?count=true", nil).want(200)["count"]; n != 1235.0 {
		t.Errorf("%v jobs are left", n)
	}
	op := f.call("POST", "/api/v1/job-actions?wait=1m", `{"action":"delete","filter":{"queue":"q"}}`).want(202)
	if op["changed"] != 1234.0 || op["state"] != "done" {
		t.Errorf("operation %v", op)
	}
	if n := f.call("GET", "/api/v1/jobs?count=true", nil).want(200)["count"]; n != 1.0 {
		t.Errorf("%v jobs are left", n)
	}
	id := op["id"].(string)
	if again := f.call("GET", "/api/v1/operations/"+id, nil).want(200); again["changed"] != 1234.0 {
		t.Errorf("operation %v", again)
	}
	if list := f.call("GET", "/api/v1/operations", nil); !strings.Contains(string(list.text), id) {
		t.Errorf("operations %s", list.text)
	}
}

func TestBadActions(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.submit(&core.Job{Queue: "q", Origin: core.Gearman})
	for body, field := range map[string]string{
		`{}`:                               "body",
		`{"action":"explode","filter":{}}`: "body.action",
		`{"action":"retry"}`:               "body.filter",
		`{"action":"retry","ids":[]}`:      "body.filter",
		`{"action":"retry","ids":["seq:1"],"filter":{}}`: "body.filter",
		`{"action":"move","filter":{}}`:                  "body.queue",
		`{"action":"priority","filter":{}}`:              "body.priority",
		`{"action":"retry","filter":{"state":"odd"}}`:    "body.filter.state",
		`{"action":"retry","filter":{"state":7}}`:        "body.filter.state",
		`{"action":"retry","filter":{"colour":"red"}}`:   "body.filter.colour",
	} {
		p := f.call("POST", "/api/v1/job-actions", body).problem(422, "invalid_request")
		errs, _ := p["errors"].([]any)
		if len(errs) == 0 || errs[0].(map[string]any)["location"] != field {
			t.Errorf("%s: %v, want the field %s", body, p["errors"], field)
		}
	}
	f.call("POST", "/api/v1/job-actions", `{"action":"retry","ids":["nothing"]}`).problem(404, "job_not_found")
	f.call("GET", "/api/v1/operations/op-99", nil).problem(404, "operation_not_found")
}

func TestJobsAreMovedAndReordered(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	a, b := f.push(map[string]any{"queue": "q"}), f.push(map[string]any{"queue": "q"})
	f.call("POST", "/api/v1/job-actions?wait=1m",
		map[string]any{"action": "priority", "ids": []any{b["id"]}, "priority": 5}).want(202)
	if _, job := f.leaseOne(); job["id"] != b["id"] || job["priority"] != 5.0 {
		t.Errorf("first out is %v", job)
	}
	f.call("POST", "/api/v1/job-actions?wait=1m", map[string]any{
		"action": "move", "filter": map[string]any{"queue": "q", "state": "ready"}, "queue": "r",
	}).want(202)
	if job := f.call("GET", "/api/v1/jobs/"+a["id"].(string), nil).want(200); job["queue"] != "r" ||
		job["seq"] != a["seq"] {
		t.Errorf("moved %v", job)
	}
}

func TestJobsAreUpdated(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	created := f.call("POST", "/api/v1/jobs", `{"queue":"q","body":"old","run_at":"2031-01-01T00:00:00Z"}`)
	path := "/api/v1/jobs/" + created.want(201)["id"].(string)
	a := f.call("PATCH", path,
		`{"priority":3,"tags":["x"],"type":"T","args":[1],"max_fails":7,"lease_for_s":90,"run_at":"2032-01-01T00:00:00Z"}`)
	job := a.want(200)
	for name, want := range map[string]any{
		"priority": 3.0, "tags": []any{"x"}, "type": "T", "args": []any{1.0}, "max_fails": 7.0, "lease_for_s": 90.0,
		"run_at": "2032-01-01T00:00:00Z", "queue": "q", "state": "scheduled", "body": nil,
	} {
		if fmt.Sprint(job[name]) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %v", name, job[name], want)
		}
	}
	if a.header.Get("ETag") == created.header.Get("ETag") {
		t.Error("a change leaves the ETag as it was")
	}
	if job := f.call("PATCH", path, `{"queue":"r","run_at":"2030-01-01T00:00:00Z"}`).want(200); job["queue"] != "r" ||
		job["state"] != "ready" {
		t.Errorf("moved %v", job)
	}
	f.call("PATCH", path, `{"queue":""}`).problem(422, "invalid_request")
	f.call("PATCH", path, `{"body":"a","args":[]}`).problem(422, "invalid_request")
	f.call("PATCH", path, `{"state":"done"}`).problem(422, "invalid_request")
	f.call("PATCH", "/api/v1/jobs/nothing", `{}`).problem(404, "job_not_found")
}

// A worker keeps its lease when an operator changes its job.
func TestUpdatesLeaveLeasesAlone(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	job := f.push(map[string]any{"queue": "q"})
	token, _ := f.leaseOne()
	f.call("PATCH", "/api/v1/jobs/"+job["id"].(string), `{"priority":3}`).want(200)
	f.call("POST", "/api/v1/leases/"+token+"/heartbeat", nil).want(200)
	f.call("POST", "/api/v1/leases/"+token+"/complete", nil).want(204)
}

func TestListOfWorkersLeavesOutTheBrokersOwnClients(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{"queue": "q"})
	f.listen("?kind=submitted", "").close()
	lease := f.call("POST", "/api/v1/queues/q/lease", `{"worker":"gone"}`).want(200)
	f.call("POST", "/api/v1/leases/"+lease["lease"].(string)+"/complete", nil).want(204)
	workers := f.call("GET", "/api/v1/workers", nil).want(200)["workers"].([]any)
	if len(workers) != 1 || workers[0].(map[string]any)["protocol"] != "gearman" {
		t.Errorf("%v, want the fixture's client alone", workers)
	}
}

func TestWorkersOfAllProtocolsAreListed(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	closed := false
	gearman := f.engine.Open(core.ClientOptions{
		Protocol: core.Gearman, Wake: func() {}, Close: func() { closed = true }, Address: "192.0.2.1:4",
		Identity: "CN=x", Name: "resizer",
	})
	f.submit(&core.Job{Queue: "q", Origin: core.Gearman})
	f.engine.Do(gearman, []core.Op{&core.Register{Queue: "q"}, &core.Lease{}}, nil)
	f.push(map[string]any{"queue": "h"})
	f.call("POST", "/api/v1/queues/h/lease", `{"worker":"curl"}`).want(200)
	var all []any
	for cursor, more := "", true; more; {
		page := f.call("GET", "/api/v1/workers?limit=1&cursor="+cursor, nil).want(200)
		all = append(all, page["workers"].([]any)...)
		cursor, more = page["cursor"].(string)
	}
	text, _ := json.Marshal(all)
	var id string
	for _, w := range all {
		if w := w.(map[string]any); w["name"] == "resizer" {
			id = w["id"].(string)
			held := w["held"].([]any)
			if w["protocol"] != "gearman" || w["address"] != "192.0.2.1:4" || w["identity"] != "CN=x" ||
				fmt.Sprint(w["queues"]) != "[q]" || len(held) != 1 || held[0].(map[string]any)["queue"] != "q" {
				t.Errorf("the Gearman worker: %v", w)
			}
		}
	}
	if id == "" || !strings.Contains(string(text), `"id":"worker:curl"`) {
		t.Fatalf("workers: %s", text)
	}
	f.call("POST", "/api/v1/workers/"+id+"/quiet", nil).problem(501, "not_available")
	f.call("DELETE", "/api/v1/workers/"+id, nil).want(204)
	f.call("DELETE", "/api/v1/workers/conn:999", nil).problem(404, "worker_not_found")
	if !closed {
		t.Error("the connection was not closed")
	}
	f.call("GET", "/api/v1/workers?protocol=smtp", nil).problem(422, "invalid_request")
}
