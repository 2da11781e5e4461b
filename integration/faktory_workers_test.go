package integration_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"syscall"
	"testing"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/harness"
)

func TestGoWorkerRunsWhatTheGoClientPushes(t *testing.T) {
	t.Parallel()
	b := start(t)
	c := dialFaktory(t, b)
	w := goWorker(t, b, "default:Send=echo", "bad=fail")
	const count = 50
	want := make([]string, count)
	for i := range want {
		job := faktory.NewJob("Send", i)
		want[i] = fmt.Sprintf("[%d]", i)
		check(t, c.Push(job))
	}
	slices.Sort(want)
	equal(t, "args", bodies(w.Await("job", count), "job"), want)
	check(t, c.Push(fktJob("bad", 1)))
	awaitSets(t, c, "retries 1, working 0")
	harness.Eventually(t, func() string {
		if d := fktState(t, c).Data; d.TotalProcessed != count+1 || d.TotalFailures != 1 {
			return fmt.Sprintf("processed %d, failures %d", d.TotalProcessed, d.TotalFailures)
		}
		return ""
	})
}

func TestGoWorkerStopsGracefully(t *testing.T) {
	t.Parallel()
	b := start(t)
	c := dialFaktory(t, b)
	w := goWorker(t, b, "polite=echo")
	check(t, c.Push(fktJob("polite", 1)))
	w.Await("job", 1)
	awaitSets(t, c, "working 0")
	check(t, w.Signal(syscall.SIGTERM))
	w.Await("shutdown", 1)
	code, err := w.Wait(harness.Patience)
	check(t, err)
	equal(t, "exit code", code, 0)
}

func TestNodeWorkerRunsWhatTheNodeClientPushes(t *testing.T) {
	t.Parallel()
	harness.NeedNode(t)
	b := start(t)
	c := dialFaktory(t, b)
	w := nodeWorker(t, b, "mail=echo", "bad=fail")
	id := only(t, nodeClient(t, b, "push", "mail", `["someone",{"a":[1,2]}]`, `{"custom":{"k":"v"}}`), "created").ID
	job := w.Await("job", 1)[0]
	equal(t, "job", []string{job.ID, job.Func, string(job.Data)}, []string{id, "mail", `["someone",{"a":[1,2]}]`})
	var custom map[string]any
	check(t, json.Unmarshal(job.Custom, &custom))
	equal(t, "custom", custom["k"], any("v"))

	only(t, nodeClient(t, b, "push", "bad", `["x"]`), "created")
	failed := w.Await("fail", 1)[0]
	equal(t, "failure", failed.Error, "broken: x")
	awaitSets(t, c, "retries 1, working 0")
	only(t, nodeClient(t, b, "mutate", "requeue", "retries", `{"jobtype":"bad"}`), "mutated")
	w.Await("fail", 2)
	awaitSets(t, c, "retries 1, working 0") // the server may learn of it later than the test
	only(t, nodeClient(t, b, "mutate", "kill", "retries", `{}`), "mutated")
	awaitSets(t, c, "retries 0, dead 1")
}

func TestNodeBulkPushAndInfo(t *testing.T) {
	t.Parallel()
	harness.NeedNode(t)
	b := start(t)
	events := nodeClient(t, b, "bulk", "many", "100")
	equal(t, "created", len(bodies(events, "created")), 100)
	refused := only(t, events, "rejected")
	equal(t, "refused", refused.ID+": "+refused.Error, "short: jobs must have a reasonable jid parameter")
	var info faktory.FaktoryState
	check(t, json.Unmarshal(only(t, nodeClient(t, b, "info"), "info").Data, &info))
	equal(t, "queue", info.Data.Queues["many"], uint64(100))
	equal(t, "enqueued", info.Data.TotalEnqueued, uint64(100))
}

func TestNodeAndGoWorkersWithAPassword(t *testing.T) {
	t.Parallel()
	harness.NeedNode(t)
	b := harness.Start(t, harness.Options{Password: "open-sesame"})
	node := nodeWorker(t, b, "by-node=echo")
	goes := goWorker(t, b, "by-go=echo")
	only(t, nodeClient(t, b, "push", "by-go", `[1]`), "created")
	goes.Await("job", 1)
	check(t, dialFaktory(t, b).Push(fktJob("by-node", 2)))
	node.Await("job", 1)
}

func TestNodeWorkerStopsGracefully(t *testing.T) {
	t.Parallel()
	harness.NeedNode(t)
	b := start(t)
	c := dialFaktory(t, b)
	w := nodeWorker(t, b, "polite=echo")
	check(t, c.Push(fktJob("polite", 1)))
	w.Await("job", 1)
	awaitSets(t, c, "working 0") // a worker that is told to end waits two seconds for its jobs
	check(t, w.Signal(syscall.SIGTERM))
	code, err := w.Wait(harness.Patience)
	check(t, err)
	equal(t, "exit code", code, 0)
	equal(t, "processed", fktState(t, c).Data.TotalProcessed, uint64(1))
}
