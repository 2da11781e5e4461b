package httpapi

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"broker/core"
	"broker/core/engine"
	"broker/operate/service"
)

// slowDisk is a broker that commits after each operation, but not while it hangs.
type slowDisk struct {
	*engine.Engine
	hangs atomic.Bool
}

// Do implements core.Broker.
func (d *slowDisk) Do(id core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	into = d.Engine.Do(id, ops, into)
	if !d.hangs.Load() {
		d.Flush()
	}
	return into
}

func TestChangesThatAreNotCommittedInTimeMayStillApply(t *testing.T) {
	t.Parallel()
	disk := &slowDisk{}
	f := setupService(t, Options{}, engine.Options{ManualCommits: true}, func(o *service.Options) {
		disk.Engine = o.Broker.(*engine.Engine)
		o.Broker, o.CommitTimeout = disk, time.Millisecond
	})
	f.push(map[string]any{"queue": "q", "id": "first"})
	for name, change := range map[string]struct {
		method, path, body string
		applied            func() bool
	}{
		"a submission": {"POST", "/jobs", `{"queue":"q","id":"one"}`, func() bool { return f.state("one") == "ready" }},
		"submissions": {
			"POST", "/jobs", `{"jobs":[{"queue":"q","id":"two"},{"queue":"q","id":"three"}]}`,
			func() bool { return f.state("two") == "ready" && f.state("three") == "ready" },
		},
		"a change of a job": {"PATCH", "/jobs/first", `{"priority":7}`, func() bool {
			return f.call("GET", "/api/v1/jobs/first", nil).want(200)["priority"] == 7.0
		}},
		"a change of a queue": {"PATCH", "/queues/q", `{"paused":true}`, func() bool {
			return f.call("GET", "/api/v1/queues/q", nil).want(200)["paused"] == true
		}},
	} {
		disk.hangs.Store(true)
		f.call(change.method, apiPath+change.path, change.body).problem(504, "commit_timeout")
		disk.hangs.Store(false)
		disk.Flush()
		if !change.applied() {
			t.Errorf("%s is lost, although it was committed later", name)
		}
	}
}

func TestASubmissionThatTimedOutIsRepeatedByItsKey(t *testing.T) {
	t.Parallel()
	disk := &slowDisk{}
	f := setupService(t, Options{}, engine.Options{ManualCommits: true}, func(o *service.Options) {
		disk.Engine = o.Broker.(*engine.Engine)
		o.Broker, o.CommitTimeout = disk, time.Millisecond
	})
	key := func(r *http.Request) { r.Header.Set("Idempotency-Key", "order 7") }
	disk.hangs.Store(true)
	f.call("POST", "/api/v1/jobs", `{"queue":"q"}`, key).problem(504, "commit_timeout")
	disk.hangs.Store(false)
	f.call("POST", "/api/v1/jobs", `{"queue":"q"}`, key).want(201)
	if all := f.seqs("", 10); all != "[1]" {
		t.Errorf("jobs %s, want the first only", all)
	}
}

// dyingDisk is a broker that stops before an operation is durable.
type dyingDisk struct {
	*slowDisk
	stopped atomic.Bool
}

// Stopped implements core.Broker.
func (d *dyingDisk) Stopped() bool { return d.stopped.Load() }

func TestAChangeOfABrokerThatStopsHasAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	disk := &dyingDisk{slowDisk: &slowDisk{}}
	f := setupService(t, Options{}, engine.Options{ManualCommits: true}, func(o *service.Options) {
		disk.Engine = o.Broker.(*engine.Engine)
		o.Broker, o.CommitTimeout = disk, time.Minute
	})
	key := func(r *http.Request) { r.Header.Set("Idempotency-Key", "order 8") }
	disk.hangs.Store(true)
	disk.stopped.Store(true)
	f.call("POST", "/api/v1/jobs", `{"queue":"q"}`, key).problem(504, "outcome_unknown")
	read := f.call("GET", "/api/v1/jobs", "")
	read.problem(503, "store_failed") // what it would show may never be on disk
	if !strings.Contains(string(read.text), "mend the disk") {
		t.Errorf("the read is told %s", read.text)
	}
	disk.hangs.Store(false)
	disk.stopped.Store(false)
	f.call("POST", "/api/v1/jobs", `{"queue":"q"}`, key).want(201)
	if all := f.seqs("", 10); all != "[1]" {
		t.Errorf("jobs %s, want the first only", all)
	}
}

// A node that no longer leads has no failed store: requests that it still gets are told to ask again.
func TestANodeThatNoLongerLeadsDoesNotBlameItsStore(t *testing.T) {
	t.Parallel()
	var e *engine.Engine
	f := setupService(t, clustered(), engine.Options{}, func(o *service.Options) { e = o.Broker.(*engine.Engine) })
	f.push(map[string]any{"queue": "q", "id": "first"})
	token, _ := f.leaseOne()
	e.Abandon()
	for path, body := range map[string]string{
		"jobs":                          `{"queue":"q"}`,
		"queues/q/lease":                `{}`,
		"leases":                        `{"queues":["q"],"max":2}`,
		"leases/" + token + "/complete": `{}`,
		"leases/complete":               `{"leases":[{"lease":"` + token + `"}]}`,
		"batches":                       `{}`,
	} {
		f.call("POST", "/api/v1/"+path, body).problem(503, "no_leader")
	}
}
