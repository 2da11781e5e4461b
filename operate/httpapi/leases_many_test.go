package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// leaseMany leases jobs and returns their tokens and ids.
func (f *apiFixture) leaseMany(body string) (tokens, ids []string) {
	f.t.Helper()
	list, is := f.call("POST", "/api/v1/leases", body).want(200)["leases"].([]any)
	if !is {
		f.t.Fatal("no list of leases")
	}
	for _, l := range list {
		tokens = append(tokens, l.(map[string]any)["lease"].(string))
		ids = append(ids, l.(map[string]any)["job"].(map[string]any)["id"].(string))
	}
	return tokens, ids
}

// finishMany reports on leases and returns the code of each; "ok" for an accepted report.
func (f *apiFixture) finishMany(verb string, items ...map[string]any) (codes []string, results []map[string]any) {
	f.t.Helper()
	a := f.call("POST", "/api/v1/leases/"+verb, map[string]any{"leases": items}).want(200)
	for i, r := range a["results"].([]any) {
		one := r.(map[string]any)
		if one["lease"] != items[i]["lease"] {
			f.t.Errorf("%s: result %d is of another lease", verb, i)
		}
		code := "ok"
		if one["ok"] != true {
			code, _ = one["code"].(string)
		}
		codes, results = append(codes, code), append(results, one)
	}
	return codes, results
}

func leasesOf(tokens ...string) (items []map[string]any) {
	for _, t := range tokens {
		items = append(items, map[string]any{"lease": t})
	}
	return items
}

func TestManyAreLeasedQueueByQueue(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for _, q := range []string{"b", "a", "b", "a"} {
		f.push(map[string]any{"queue": q, "id": fmt.Sprint(q, f.clock.Now())})
		f.advance(time.Second)
	}
	if _, ids := f.leaseMany(`{"queues":["a","b"],"max":3}`); len(ids) != 3 || ids[0][0] != 'a' || ids[1][0] != 'a' ||
		ids[2][0] != 'b' {
		t.Errorf("leased %v", ids)
	}
	if _, ids := f.leaseMany(`{"queues":["a","b"]}`); len(ids) != 1 {
		t.Errorf("without max: %v", ids)
	}
	if _, ids := f.leaseMany(`{"queues":["a","b"],"max":50}`); len(ids) != 0 {
		t.Errorf("of empty queues: %v", ids)
	}
	for _, bad := range []string{
		manyQueues(33, `"max":2,"min":2`), `{}`, `{"queues":[]}`, `{"queues":["a"],"max":0}`,
		`{"queues":["a"],"max":1001}`, `{"queues":["a"],"max":2,"min":3}`,
		`{"queues":["a"],"wait_s":601}`, `{"queues":["a"],"lease_for_s":-1}`, `{"queues":[""]}`,
	} {
		f.call("POST", "/api/v1/leases", bad).problem(422, "invalid_request")
	}
}

func TestManyWaitForAMinimumOrTheirDeadline(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	got := make(chan []string, 1)
	lease := func() {
		_, ids := f.leaseMany(`{"queues":["q"],"max":5,"min":2,"wait_s":20,"lease_for_s":7}`)
		got <- ids
	}
	go lease()
	f.parked()
	f.push(map[string]any{"queue": "q", "id": "one"})
	f.push(map[string]any{"queue": "q", "id": "two", "lease_for_s": 600})
	if ids := <-got; strings.Join(ids, " ") != "one two" {
		t.Errorf("leased %v", ids)
	}
	j := f.call("GET", "/api/v1/jobs/two", nil).want(200)
	until, _ := time.Parse(time.RFC3339Nano, j["lease_until"].(string))
	since, _ := time.Parse(time.RFC3339Nano, j["leased_at"].(string))
	if until.Sub(since) != 7*time.Second {
		t.Errorf("leased from %v until %v", since, until)
	}
	go lease()
	f.push(map[string]any{"queue": "q", "id": "three"})
	f.parked()
	f.advance(20 * time.Second)
	if ids := <-got; strings.Join(ids, " ") != "three" {
		t.Errorf("at the deadline: %v", ids)
	}
}

func TestLeasesInOneRequestEndIndependently(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for i := range 8 {
		f.push(map[string]any{
			"queue": "q", "id": fmt.Sprint("j", i), "retain_for_s": 60, "max_fails": 1, "lease_for_s": 30,
		})
	}
	tokens, _ := f.leaseMany(`{"queues":["q"],"max":8}`)
	f.call("POST", "/api/v1/leases/"+tokens[1]+"/complete", nil).want(204)
	codes, _ := f.finishMany("complete",
		map[string]any{"lease": tokens[0], "result": "text"}, map[string]any{"lease": tokens[1]},
		map[string]any{"lease": "none"},
		map[string]any{"lease": tokens[2], "result_base64": "AP8="}, map[string]any{"lease": tokens[2]})
	if got := strings.Join(codes, " "); got != "ok lease_lost invalid_lease ok lease_lost" {
		t.Errorf("completed: %s", got)
	}
	if o := f.call("GET", "/api/v1/jobs/j0", nil).want(200)["outcome"].(map[string]any); o["result"] != "text" {
		t.Errorf("outcome %v", o)
	}
	if o := f.call("GET", "/api/v1/jobs/j2", nil).want(200)["outcome"].(map[string]any); o["result_base64"] != "AP8=" {
		t.Errorf("outcome %v", o)
	}
	codes, _ = f.finishMany("fail",
		map[string]any{"lease": tokens[3], "error_class": "E", "message": "m"}, map[string]any{"lease": tokens[0]})
	if got := strings.Join(codes, " "); got != "ok lease_lost" {
		t.Errorf("failed: %s", got)
	}
	if failure := f.call("GET", "/api/v1/jobs/j3", nil).want(200)["failure"].(map[string]any); failure["type"] != "E" {
		t.Errorf("failure %v", failure)
	}
	codes, _ = f.finishMany("release", leasesOf(tokens[4], tokens[4], tokens[5])...)
	if got := strings.Join(codes, " "); got != "ok lease_lost ok" || f.state("j4") != "ready" {
		t.Errorf("released: %s, %v", got, f.state("j4"))
	}
	f.advance(20 * time.Second)
	codes, results := f.finishMany("heartbeat", map[string]any{"lease": tokens[6]},
		map[string]any{"lease": tokens[7], "extend_s": 300}, map[string]any{"lease": tokens[4]})
	if got := strings.Join(codes, " "); got != "ok ok lease_lost" || results[2]["lease_until"] != nil {
		t.Errorf("extended: %s, %v", got, results[2])
	}
	for i, want := range []time.Duration{30 * time.Second, 300 * time.Second} {
		until, err := time.Parse(time.RFC3339Nano, results[i]["lease_until"].(string))
		if left := until.Sub(f.clock.Now().Time()); err != nil || left != want {
			t.Errorf("lease %d lasts another %v, %v", i, left, err)
		}
	}
	f.call("POST", "/api/v1/leases/"+tokens[7]+"/complete", nil).want(204) // single forms take the same tokens
}

func TestMalformedRequestForManyChangesNothing(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{"queue": "q", "id": "j"})
	tokens, _ := f.leaseMany(`{"queues":["q"]}`)
	both, err := json.Marshal(map[string]any{"leases": []any{
		map[string]any{"lease": tokens[0]}, map[string]any{"lease": tokens[0], "result": "x", "result_base64": "AA=="},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for verb, bodies := range map[string][]string{
		"complete":  {string(both), `{"leases":[{"lease":"` + tokens[0] + `"},{}]}`, `{"leases":[]}`, `{}`},
		"fail":      {`{"leases":[{"lease":"` + tokens[0] + `"},{"lease":"x","retry_in_s":-1}]}`},
		"heartbeat": {`{"leases":[{"lease":"` + tokens[0] + `"},{"lease":"x","extend_s":"1"}]}`},
		"release":   {`{"leases":[{"lease":"` + tokens[0] + `"},7]}`},
	} {
		for _, body := range bodies {
			f.call("POST", "/api/v1/leases/"+verb, body).problem(422, "invalid_request")
		}
	}
	if got := f.state("j"); got != "leased" {
		t.Errorf("the job is %v", got)
	}
}

func TestManyLeasesNeedRightsForEachQueue(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{Access: principals(t,
		map[string][]string{"a": {"produce:a", "consume:a"}, "all": {"produce", "consume", "read"}})})
	for _, q := range []string{"a", "b"} {
		f.call("POST", "/api/v1/jobs", map[string]any{"queue": q, "id": q}, as("all")).want(201)
	}
	f.call("POST", "/api/v1/leases", `{"queues":["a","b"],"max":9}`, as("a")).problem(403, "forbidden")
	l := f.call("POST", "/api/v1/leases", `{"queues":["a","b"],"max":9}`, as("all")).want(200)["leases"].([]any)
	var items []any
	for _, one := range l {
		items = append(items, map[string]any{"lease": one.(map[string]any)["lease"]})
	}
	results := f.call("POST", "/api/v1/leases/complete", map[string]any{"leases": items},
		as("a")).want(200)["results"].([]any)
	if one, two := results[0].(map[string]any), results[1].(map[string]any); one["ok"] != true || two["ok"] != false ||
		two["code"] != "forbidden" {
		t.Errorf("results %v", results)
	}
	if j := f.call("GET", "/api/v1/jobs/b", nil, as("all")).want(200); j["state"] != "leased" {
		t.Errorf("the other job is %v", j["state"])
	}
}

// manyQueues is the body of a lease of n queues.
func manyQueues(n int, more string) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf(`"q%d"`, i)
	}
	return `{"queues":[` + strings.Join(names, ",") + `],` + more + `}`
}

func TestOneJobOfManyQueuesIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{"queue": "q700"})
	for _, more := range []string{`"max":2,"min":1`, `"max":2`} {
		f.call("POST", "/api/v1/leases", manyQueues(1000, more)).want(200)
	}
	f.call("POST", "/api/v1/leases", manyQueues(32, `"max":2,"min":2`)).want(200)
}

func TestListsOfLeasesThatAreNullAreMalformed(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{"queue": "q"})
	tokens, _ := f.leaseMany(`{"queues":["q"]}`)
	f.call("POST", "/api/v1/leases", `{"queues":null}`).problem(422, "invalid_request")
	for _, verb := range []string{"complete", "fail", "heartbeat", "release"} {
		f.call("POST", "/api/v1/leases/"+verb, `{"leases":null}`).problem(422, "invalid_request")
	}
	f.call("POST", "/api/v1/leases/"+tokens[0]+"/log", `{"lines":null}`).problem(422, "invalid_request")
}
