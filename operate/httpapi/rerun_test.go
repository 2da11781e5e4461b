package httpapi

import (
	"fmt"
	"strings"
	"testing"

	"broker/core"
	"broker/core/engine"
	"broker/operate/service"
)

// rerun starts the action and returns the operation.
func (f *apiFixture) rerun(selection string) map[string]any {
	f.t.Helper()
	return f.call("POST", "/api/v1/job-actions?wait=5s", `{"action":"rerun",`+selection+`}`).want(202)
}

func TestJobThatHasEndedRunsAgainAsANewOne(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{
		"queue": "q", "id": "first", "args": []any{1, "x"}, "tags": []string{"a"}, "priority": 3, "retain_for_s": 60,
		"max_fails": 7,
	})
	if op := f.rerun(`"ids":["first"]`); op["changed"] != 0.0 || op["skipped"] != 1.0 || op["created"] != nil {
		t.Errorf("before its end: %v", op)
	}
	token, _ := f.leaseOne()
	f.call("POST", "/api/v1/leases/"+token+"/complete", nil).want(204)
	op := f.rerun(`"ids":["first","seq:1"]`) // named twice
	created, _ := op["created"].([]any)
	if op["state"] != "done" || op["changed"] != 1.0 || len(created) != 1 {
		t.Fatalf("operation %v", op)
	}
	again := f.call("GET", "/api/v1/jobs/"+created[0].(string), nil).want(200)
	if again["rerun_of"] != "first" || again["id"] == "first" || again["state"] != "ready" ||
		fmt.Sprint(again["args"], again["tags"], again["priority"], again["max_fails"]) != "[1 x] [a] 3 7" {
		t.Errorf("the new job: %v", again)
	}
	if first := f.call("GET", "/api/v1/jobs/first", nil).want(200); first["state"] != "done" ||
		first["rerun_of"] != nil {
		t.Errorf("the first job: %v", first)
	}
	if entries := f.audit(); !strings.Contains(fmt.Sprint(entries), "jobs.rerun") {
		t.Errorf("audit log: %v", entries)
	}
}

func TestRerunOfAFilterSkipsUnfinishedJobs(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for i := range 6 {
		f.push(map[string]any{"queue": "q", "body": fmt.Sprint(i), "retain_for_s": 60})
	}
	for range 4 {
		token, _ := f.leaseOne()
		f.call("POST", "/api/v1/leases/"+token+"/complete", nil).want(204)
	}
	op := f.rerun(`"filter":{"queue":"q"}`)
	if op["state"] != "done" || op["changed"] != 4.0 || op["skipped"] != 2.0 || len(op["created"].([]any)) != 4 {
		t.Errorf("operation %v", op)
	}
	if got := len(f.call("GET", "/api/v1/jobs?queue=q&limit=100", nil).want(200)["jobs"].([]any)); got != 10 {
		t.Errorf("%d jobs in the end", got)
	}
}

// cramped is a broker with room for three copies of jobs in one commit.
type cramped struct{ core.Broker }

func (b cramped) Do(id core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	fits := 0
	for fits < len(ops) && fits < 3 {
		fits++
	}
	if len(ops) > 0 {
		if _, is := ops[0].(*core.Resubmit); !is {
			fits = len(ops)
		}
	}
	into = b.Broker.Do(id, ops[:fits], into)
	for _, op := range ops[fits:] {
		into = append(into, core.Reply{Kind: core.Failed, Tag: op.TagOf(), Err: core.ErrDiskFull})
	}
	return into
}

// Copies that do not fit into one commit go into the next commits.
func TestRerunOfManyJobsTakesSeveralCommits(t *testing.T) {
	t.Parallel()
	f := setupService(t, Options{}, engine.Options{}, func(o *service.Options) { o.Broker = cramped{o.Broker} })
	for range 8 {
		f.push(map[string]any{"queue": "q", "retain_for_s": 600})
		token, _ := f.leaseOne()
		f.call("POST", "/api/v1/leases/"+token+"/complete", nil).want(204)
	}
	if op := f.rerun(`"filter":{}`); op["state"] != "done" || op["changed"] != 8.0 || op["skipped"] != nil ||
		len(op["created"].([]any)) != 8 {
		t.Errorf("operation %v", op)
	}
}
