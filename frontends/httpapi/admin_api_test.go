package httpapi

import (
	"encoding/json"
	"errors"
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
)

// desk is a server on a real engine.
type desk struct {
	t      *testing.T
	clock  *coretest.Clock
	engine *engine.Engine
	client core.ClientID
	url    string
	told   []string // what workers were told
}

func sitDown(t *testing.T, o Options) *desk {
	t.Helper()
	d := &desk{t: t, clock: coretest.NewClock()}
	e, err := engine.Open(engine.Options{
		Dir: "data", FS: engine.MemoryFS(), Clock: d.clock, Seed: 1, ManualTimers: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	d.engine = e
	d.client = e.Open(core.ClientOptions{Protocol: core.Faktory, Wake: func() {}})
	o.Log = zerolog.Nop()
	c := New(o)
	server := httptest.NewServer(c.HTTP().Handler)
	d.url = server.URL
	t.Cleanup(func() {
		server.Close()
		if err := e.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	now := e.Now()
	c.Ready(Backend{
		Broker: e, Connections: func() map[string]Connections { return nil },
		Workers: func() []Worker {
			return []Worker{{WID: "w1", State: "running", PID: 7, StartedAt: now}, {WID: "w/2", State: "quiet"}}
		},
		SetWorkerState: func(wid, state string) error {
			if !strings.HasPrefix(wid, "w") {
				return fmt.Errorf("told: %w", core.ErrNotFound)
			}
			d.told = append(d.told, wid+" "+state)
			return nil
		},
		Cron: func() []CronEntry { return []CronEntry{{Schedule: "* * * * *", Type: "T", Next: now}} },
	})
	return d
}

// do has one operation decided and wants an answer of a kind.
func (d *desk) do(op core.Op, want core.ReplyKind) core.Reply {
	d.t.Helper()
	replies := d.engine.Do(d.client, []core.Op{op}, nil)
	if len(replies) != 1 || replies[0].Kind != want {
		d.t.Fatalf("%T: %+v", op, replies)
	}
	return replies[0]
}

func (d *desk) submit(job *core.Job) uint64 {
	d.t.Helper()
	return d.do(&core.Submit{Job: job}, core.Submitted).Seq
}

// ask sends a request and returns the status and the answer.
func (d *desk) ask(method, path string) (int, map[string]any) {
	d.t.Helper()
	req, err := http.NewRequest(method, d.url+path, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // read to its end
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	var answer map[string]any
	if err := json.Unmarshal(text, &answer); err != nil && resp.Header.Get("Content-Type") == "application/json" {
		d.t.Fatalf("%s %s: %s: %v", method, path, text, err)
	}
	return resp.StatusCode, answer
}

// want sends a request and compares members of the answer, named by their path.
func (d *desk) want(method, path string, status int, members map[string]any) map[string]any {
	d.t.Helper()
	got, answer := d.ask(method, path)
	if got != status {
		d.t.Fatalf("%s %s: status %d, not %d: %v", method, path, got, status, answer)
	}
	for name, want := range members {
		var value any = answer
		for step := range strings.SplitSeq(name, ".") {
			switch v := value.(type) {
			case map[string]any:
				value = v[step]
			case []any:
				var i int
				if _, err := fmt.Sscan(step, &i); err != nil || i >= len(v) {
					value = nil
				} else {
					value = v[i]
				}
			default:
				value = nil
			}
		}
		if fmt.Sprint(value) != fmt.Sprint(want) {
			d.t.Errorf("%s %s: %s is %v, not %v", method, path, name, value, want)
		}
	}
	return answer
}

func TestQueuesOverHTTP(t *testing.T) {
	t.Parallel()
	d := sitDown(t, Options{})
	for i, queue := range []string{"a", "a", "a/b", "z"} {
		d.submit(&core.Job{Queue: queue, Origin: core.Workq, Priority: int32(i - 1)})
	}
	d.do(&core.LimitQueue{Queue: "a", Limits: core.Limits{MaxNormal: 5}}, core.Accepted)
	d.do(&core.ThrottleQueue{Queue: "a", Throttle: core.Throttle{Leased: 2, SlotFor: time.Minute}}, core.Accepted)
	d.clock.Advance(3 * time.Second)
	d.want("GET", "/api/queues", 200, map[string]any{
		"queues.0.name": "a", "queues.0.ready": 2, "queues.0.low": 1, "queues.0.normal": 1, "queues.0.latency": 3,
		"queues.0.max.normal": 5, "queues.0.throttle.concurrency": 2, "queues.0.throttle.timeout": 60,
		"queues.1.name": "a/b", "queues.1.max": nil, "queues.2.name": "z", "queues.3": nil,
	})
	d.want("GET", "/api/queues?prefix=a&offset=1&limit=1", 200, map[string]any{"queues.0.name": "a/b", "queues.1": nil})
	d.want("GET", "/api/queues?offset=x", 400, map[string]any{"error": "offset must be a number up to 2147483647"})
	d.want("GET", "/api/queues/a%2Fb", 200, map[string]any{"ready": 1, "high": 1})
	d.want("GET", "/api/queues/none", 404, map[string]any{"error": "no such queue"})

	d.want("POST", "/api/queues/a/pause", 200, map[string]any{"paused": true})
	d.do(&core.Lease{Queues: []string{"a"}}, core.NothingReady)
	d.want("GET", "/api/queues/a", 200, map[string]any{"paused": true})
	d.want("POST", "/api/queues/a/resume", 200, map[string]any{"paused": false})
	d.do(&core.Lease{Queues: []string{"a"}}, core.Assigned)
	d.want("POST", "/api/queues/none/pause", 404, nil)

	d.want("POST", "/api/queues/a%2Fb/remove", 200, map[string]any{"removed": 1})
	d.want("GET", "/api/queues/a%2Fb", 404, nil)
	if status, _ := d.ask("GET", "/api/queues/a/pause"); status != 405 && status != 404 {
		t.Errorf("an order by GET: %d", status)
	}
}

func TestRemoveTakesMoreThanOnePage(t *testing.T) {
	t.Parallel()
	d := sitDown(t, Options{})
	for range 2500 {
		d.submit(&core.Job{Queue: "long", Origin: core.Gearman})
	}
	d.want("POST", "/api/queues/long/remove", 200, map[string]any{"removed": 2500})
}

func TestJobsOverHTTP(t *testing.T) {
	t.Parallel()
	d := sitDown(t, Options{})
	const id = "a jid of its own"
	seq := d.submit(&core.Job{
		ID: id, Queue: "q", Type: "T", Body: []byte(`[1,"a"]`), Format: core.Args, Origin: core.Faktory, MaxFails: 3,
		Backoff: core.BackoffFaktory, Exhausted: core.ExhaustedBury, LeaseFor: time.Minute,
		Attributes: []byte(`{"custom":{"x":1}}`),
	})
	text := d.submit(&core.Job{Queue: "q", Body: []byte("text"), Origin: core.Gearman})
	binary := d.submit(&core.Job{Queue: "q", Body: []byte{0xff}, Origin: core.Workq, ReadyAt: d.engine.Now().Add(time.Hour)})

	d.want("GET", "/api/jobs", 200, map[string]any{"jobs.0.id": id, "jobs.0.args": nil, "jobs.3": nil, "cursor": nil})
	d.want("GET", "/api/jobs?state=scheduled", 200, map[string]any{"jobs.0.seq": binary, "jobs.1": nil})
	d.want("GET", "/api/jobs?state=ready&queue=q&limit=1", 200, map[string]any{"jobs.0.seq": seq, "jobs.1": nil, "cursor": 1})
	d.want("GET", "/api/jobs?state=ready&queue=q&limit=1&cursor=1", 200, map[string]any{"jobs.0.seq": text})
	d.want("GET", "/api/jobs?state=odd", 400, nil)
	d.want("GET", "/api/jobs?queue=none&state=ready", 404, nil)
	d.want("GET", "/api/jobs?limit=1001", 400, nil)
	page := d.want("GET", "/api/jobs?limit=2", 200, map[string]any{"jobs.1.seq": text, "jobs.2": nil})
	d.want("GET", fmt.Sprintf("/api/jobs?cursor=%v", page["cursor"]), 200, map[string]any{"jobs.0.seq": binary})

	d.want("GET", "/api/jobs/"+url.PathEscape(id), 200, map[string]any{
		"seq": seq, "alias": core.Alias(seq), "type": "T", "origin": "faktory", "state": "ready", "args.1": "a",
		"max_fails": 3, "lease_for": 60, "attributes.custom.x": 1, "body_bytes": 7,
	})
	minted := core.MintedID(text, d.engine.Now())
	for _, name := range []string{minted, core.Alias(text), fmt.Sprint(text), "H:some.host:" + fmt.Sprint(text)} {
		d.want("GET", "/api/jobs/"+name, 200, map[string]any{"id": minted, "body": "text", "type": "q"})
	}
	d.want("GET", "/api/jobs/"+fmt.Sprint(binary), 200, map[string]any{"body_base64": "/w==", "body": nil})
	d.want("GET", "/api/jobs/unknown", 404, map[string]any{"error": "no such job"})
	d.want("GET", "/api/jobs/0", 404, nil)

	d.do(&core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w1"}, core.Assigned)
	d.do(&core.Report{Ref: core.Ref{ID: id}, Authority: core.ByLeased, Progress: core.Progress{Num: 1, Den: 4, Text: "hm"}}, core.Accepted)
	d.want("GET", "/api/jobs/"+fmt.Sprint(seq), 200, map[string]any{
		"state": "leased", "worker": "w1", "attempts": 1, "progress.denominator": 4, "progress.text": "hm",
	})
	d.do(&core.Fail{Ref: core.Ref{ID: id}, Authority: core.ByLeased, Failure: &core.Failure{
		Type: "E", Message: "m", Backtrace: []string{"line"},
	}}, core.Accepted)
	d.want("GET", "/api/jobs/"+fmt.Sprint(seq), 200, map[string]any{
		"state": "retrying", "fails": 1, "failure.type": "E", "failure.message": "m", "failure.backtrace.0": "line",
	})
}

func TestJobsAreChangedOverHTTP(t *testing.T) {
	t.Parallel()
	d := sitDown(t, Options{})
	later := d.engine.Now().Add(time.Hour)
	seq := fmt.Sprint(d.submit(&core.Job{Queue: "q", Origin: core.Faktory, ReadyAt: later, DeadFor: time.Hour}))
	state := func(want string) {
		t.Helper()
		d.want("GET", "/api/jobs/"+seq, 200, map[string]any{"state": want})
	}
	d.want("POST", "/api/jobs/"+seq+"/requeue", 200, map[string]any{"seq": seq})
	state("ready")
	d.want("POST", "/api/jobs/"+seq+"/requeue", 409, map[string]any{"error": core.ErrInvalid.Error()})
	d.want("POST", "/api/jobs/"+seq+"/kill", 200, nil)
	state("dead")
	d.want("POST", "/api/jobs/"+seq+"/requeue", 200, nil)
	state("ready")
	d.want("POST", "/api/jobs/"+seq+"/cancel", 200, nil)
	d.want("GET", "/api/jobs/"+seq, 404, nil)
	for _, order := range []string{"requeue", "kill", "cancel"} {
		d.want("POST", "/api/jobs/"+seq+"/"+order, 404, nil)
	}
}

func TestOutcomesAreShownWhileTheyAreKept(t *testing.T) {
	t.Parallel()
	d := sitDown(t, Options{})
	seq := d.submit(&core.Job{Queue: "q", Origin: core.Workq, RetainUntil: d.engine.Now().Add(time.Hour)})
	d.do(&core.Complete{Ref: core.Ref{Seq: seq}, Authority: core.ByAnyone, Result: []byte("fine")}, core.Accepted)
	d.want("GET", fmt.Sprint("/api/jobs/", seq), 200, map[string]any{
		"state": "done", "outcome.success": true, "outcome.result": "fine",
	})
}

func TestWorkersOverHTTP(t *testing.T) {
	t.Parallel()
	d := sitDown(t, Options{})
	d.want("GET", "/api/workers", 200, map[string]any{
		"workers.0.wid": "w1", "workers.0.pid": 7, "workers.0.labels": []any{}, "workers.1.state": "quiet",
		"workers.0.started_at": "2030-01-01T00:00:00Z",
	})
	d.want("POST", "/api/workers/w1/quiet", 200, map[string]any{"state": "quiet", "workers": 1})
	d.want("POST", "/api/workers/w%2F2/terminate", 200, nil)
	d.want("POST", "/api/workers/none/quiet", 404, map[string]any{"error": "no such worker"})
	d.want("POST", "/api/workers/quiet", 200, map[string]any{"state": "quiet", "workers": 2})
	d.want("POST", "/api/workers/terminate", 200, map[string]any{"workers": 2})
	if got := fmt.Sprint(d.told); got != "[w1 quiet w/2 terminate w1 quiet w/2 quiet w1 terminate w/2 terminate]" {
		t.Errorf("told: %s", got)
	}
}

func TestTimetableAndHistoryOverHTTP(t *testing.T) {
	t.Parallel()
	d := sitDown(t, Options{})
	d.want("GET", "/api/cron", 200, map[string]any{
		"entries.0.schedule": "* * * * *", "entries.0.type": "T", "entries.0.next_at": "2030-01-01T00:00:00Z",
		"entries.0.last_at": nil,
	})
	for range 3 {
		for range 2 {
			d.submit(&core.Job{Queue: "q", Origin: core.Faktory})
			r := d.do(&core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w"}, core.Assigned)
			d.do(&core.Complete{Ref: core.Ref{Seq: r.Seq}, Authority: core.ByLeased}, core.Accepted)
		}
		d.clock.Advance(24 * time.Hour)
		d.engine.Tick()
	}
	d.want("GET", "/api/history?days=2", 200, map[string]any{
		"days.0.processed": 2, "days.2": nil, "total_processed": 6, "total_failed": 0,
	})
	d.want("GET", "/api/history?days=-1", 400, nil)
}

func TestOrdersNeedTheRightCaller(t *testing.T) {
	t.Parallel()
	send := func(d *desk, method, path string, change func(*http.Request)) int {
		t.Helper()
		req, err := http.NewRequest(method, d.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		change(req)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // the status is all
		return resp.StatusCode
	}
	foreign := func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }
	renamed := func(r *http.Request) { r.Host = "evil.example" }
	known := func(r *http.Request) { r.SetBasicAuth("", "pw") }
	open, guarded := sitDown(t, Options{}), sitDown(t, Options{Password: "pw"})
	for _, path := range []string{
		"/api/queues/q/pause", "/api/queues/q/resume", "/api/queues/q/remove", "/api/workers/w1/quiet",
		"/api/workers/terminate", "/api/jobs/1/requeue", "/api/jobs/1/kill", "/api/jobs/1/cancel",
	} {
		for what, got := range map[string]int{
			"another site's page":   send(open, "POST", path, foreign),
			"another name":          send(open, "POST", path, renamed),
			"a site with the right": send(guarded, "POST", path, func(r *http.Request) { foreign(r); known(r) }),
		} {
			if got != http.StatusForbidden {
				t.Errorf("%s by %s: %d", path, what, got)
			}
		}
		if got := send(guarded, "POST", path, func(*http.Request) {}); got != http.StatusUnauthorized {
			t.Errorf("%s without the password: %d", path, got)
		}
	}
	for _, path := range []string{"/api/queues", "/api/workers", "/api/jobs", "/api/jobs/1", "/api/cron", "/api/history"} {
		if got := send(open, "GET", path, renamed); got != http.StatusForbidden {
			t.Errorf("%s by another name: %d", path, got)
		}
		if got := send(guarded, "GET", path, func(*http.Request) {}); got != http.StatusUnauthorized {
			t.Errorf("%s without the password: %d", path, got)
		}
		if got := send(guarded, "GET", path, known); got != http.StatusOK && path != "/api/jobs/1" {
			t.Errorf("%s with the password: %d", path, got)
		}
	}
}

func TestAPIWaitsForTheStart(t *testing.T) {
	t.Parallel()
	f := setup(t, Options{})
	f.want("/api/queues", 503, `{"error":"starting"}`)
}

func TestEveryRefusalOfTheCoreHasAStatus(t *testing.T) {
	t.Parallel()
	for _, err := range core.Errors {
		if status := statusOf(fmt.Errorf("wrapped: %w", err)); status < 400 {
			t.Errorf("%v: %d", err, status)
		}
	}
	if statusOf(errors.New("odd")) != http.StatusInternalServerError {
		t.Error("an unknown error is not the caller's")
	}
}
