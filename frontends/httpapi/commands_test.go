package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"broker/core"
)

// stages has a job of its own queue in each state that a job can be in, by the state's name.
func (d *desk) stages() map[string]uint64 {
	d.t.Helper()
	base := core.Job{Origin: core.Faktory, MaxFails: 3, Backoff: core.BackoffFaktory, Exhausted: core.ExhaustedBury, DeadFor: time.Hour}
	submit := func(queue string, change func(*core.Job)) uint64 {
		job := base
		job.Queue = queue
		change(&job)
		return d.submit(&job)
	}
	lease := func(queue string) {
		d.do(&core.Lease{Queues: []string{queue}, Holder: core.HeldByWorker, Worker: "w1"}, core.Assigned)
	}
	fail := func(seq uint64) {
		d.do(&core.Fail{Ref: core.Ref{Seq: seq}, Authority: core.ByLeased, Failure: &core.Failure{}}, core.Accepted)
	}
	later := d.engine.Now().Add(time.Hour)
	all := map[string]uint64{
		"scheduled": submit("scheduled", func(j *core.Job) { j.ReadyAt = later }),
		"ready":     submit("ready", func(*core.Job) {}),
		"leased":    submit("leased", func(*core.Job) {}),
		"retrying":  submit("retrying", func(*core.Job) {}),
		"dead":      submit("dead", func(j *core.Job) { j.MaxFails = 1 }),
		"done":      submit("done", func(j *core.Job) { j.RetainUntil = later }),
	}
	all["blocked"] = submit("blocked", func(j *core.Job) { j.After = []uint64{all["scheduled"]} })
	for _, state := range []string{"leased", "retrying", "dead", "done"} {
		lease(state)
	}
	fail(all["retrying"])
	fail(all["dead"])
	d.do(&core.Complete{Ref: core.Ref{Seq: all["done"]}, Authority: core.ByLeased}, core.Accepted)
	for state, seq := range all {
		d.want("GET", "/api/jobs?state="+state, 200, map[string]any{"jobs.0.seq": seq, "jobs.0.state": state, "jobs.1": nil})
	}
	return all
}

// What an order makes of a job in each state; a number is the refusal.
func TestOrdersDoInEachStateWhatTheyArePromisedTo(t *testing.T) {
	t.Parallel()
	for order, ends := range map[string]map[string]string{
		"requeue": {
			"scheduled": "ready", "retrying": "ready", "blocked": "ready", "dead": "ready",
			"ready": "409", "leased": "409", "done": "409",
		},
		"kill": {
			"scheduled": "dead", "retrying": "dead", "blocked": "dead", "dead": "dead", "ready": "dead", "leased": "dead",
			"done": "409",
		},
		"cancel": {
			"scheduled": "gone", "retrying": "gone", "blocked": "gone", "dead": "gone", "ready": "gone", "leased": "gone",
			"done": "gone",
		},
	} {
		for state, end := range ends {
			t.Run(order+" "+state, func(t *testing.T) {
				t.Parallel()
				d := sitDown(t, Options{})
				path := fmt.Sprint("/api/jobs/", d.stages()[state])
				switch end {
				case "409":
					d.want("POST", path+"/"+order, 409, nil)
					d.want("GET", path, 200, map[string]any{"state": state})
				case "gone":
					d.want("POST", path+"/"+order, 200, nil)
					d.want("GET", path, 404, nil)
				default:
					d.want("POST", path+"/"+order, 200, nil)
					d.want("GET", path, 200, map[string]any{"state": end})
				}
			})
		}
	}
}

func TestWhoWaitsForACancelledJobIsTold(t *testing.T) {
	t.Parallel()
	d := sitDown(t, Options{})
	waiting := d.engine.Open(core.ClientOptions{Protocol: core.Gearman, Wake: func() {}})
	submitted := d.engine.Do(waiting, []core.Op{&core.Submit{
		Tag: 7, Job: &core.Job{Queue: "q", Origin: core.Gearman, Ephemeral: true}, Watch: core.WatchStream,
	}}, nil)
	d.want("POST", fmt.Sprintf("/api/jobs/%d/cancel", submitted[0].Seq), 200, nil)
	told := d.engine.Do(waiting, nil, nil)
	if len(told) != 1 || told[0].Kind != core.Ended || told[0].Tag != 7 || told[0].Outcome.Success {
		t.Errorf("told %+v", told)
	}
}

func TestRemovingAQueueTakesItsReadyJobsItsPauseAndItsLimitsOnly(t *testing.T) {
	t.Parallel()
	d := sitDown(t, Options{})
	all := d.stages()
	for _, state := range []string{"scheduled", "retrying", "leased", "dead", "ready"} {
		removed := 0
		if state == "ready" {
			removed = 1
		}
		d.want("POST", "/api/queues/"+state+"/pause", 200, nil)
		d.do(&core.LimitQueue{Queue: state, Limits: core.Limits{MaxNormal: 1}}, core.Accepted)
		d.want("POST", "/api/queues/"+state+"/remove", 200, map[string]any{"removed": removed})
		if path := fmt.Sprint("/api/jobs/", all[state]); state == "ready" {
			d.want("GET", path, 404, nil)
		} else {
			d.want("GET", path, 200, map[string]any{"state": state})
		}
		for range 2 { // the limit was one
			d.submit(&core.Job{Queue: state, Origin: core.Workq})
		}
		d.want("GET", "/api/queues/"+state, 200, map[string]any{"paused": false, "max": nil})
	}
}

// slowDisk is a broker whose commits are announced when the test lets them be.
type slowDisk struct {
	core.Broker
	wake   func()        // of the client that waits
	asked  chan struct{} // closed when it wants to know
	first  atomic.Bool
	done   atomic.Bool
	failed atomic.Bool
}

// Open implements core.Broker.
func (s *slowDisk) Open(o core.ClientOptions) core.ClientID {
	s.wake = o.Wake
	return s.Broker.Open(o)
}

// Committed implements core.Broker.
func (s *slowDisk) Committed() core.Commit {
	if s.first.CompareAndSwap(false, true) {
		close(s.asked)
	}
	if s.done.Load() {
		return s.Broker.Committed()
	}
	return 0
}

// Stopped implements core.Broker.
func (s *slowDisk) Stopped() bool { return s.failed.Load() }

func TestOrdersAreAnsweredOnceTheyAreOnDisk(t *testing.T) {
	t.Parallel()
	for order, test := range map[string]struct {
		fails  bool
		status int
	}{
		"/api/queues/ready/pause":  {false, 200},
		"/api/queues/ready/remove": {false, 200},
		"/api/jobs/1/cancel":       {false, 200},
		"/api/queues/ready/resume": {true, 503},
		"/api/jobs/1/kill":         {true, 503},
	} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			d := sitDown(t, Options{})
			d.submit(&core.Job{Queue: "ready", Origin: core.Workq})
			disk := &slowDisk{Broker: d.engine, asked: make(chan struct{})}
			c := New(Options{Log: zerolog.Nop()})
			c.Ready(Backend{Broker: disk})
			answered := make(chan *httptest.ResponseRecorder, 1)
			go func() { // ends with the answer
				w := httptest.NewRecorder()
				c.HTTP().Handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://localhost"+order, http.NoBody))
				answered <- w
			}()
			select {
			case <-disk.asked:
			case w := <-answered:
				t.Fatalf("answered before the disk was asked: %d %s", w.Code, w.Body)
			}
			disk.failed.Store(test.fails)
			disk.done.Store(!test.fails)
			disk.wake()
			if w := <-answered; w.Code != test.status {
				t.Errorf("%d %s, want %d", w.Code, w.Body, test.status)
			}
		})
	}
}

func TestWhereAnOrderMakesNoSense(t *testing.T) {
	t.Parallel()
	var dirs []string
	c := New(Options{Log: zerolog.Nop()})
	c.Ready(Backend{Broker: &idleBroker{}, Backup: func(dir string) error {
		dirs = append(dirs, dir)
		switch dir {
		case "/there":
			return &Refusal{Status: http.StatusConflict, Err: errors.New("it is there")}
		case "/broken":
			return errors.New("the disk does not take it")
		}
		return nil
	}})
	server := httptest.NewServer(c.HTTP().Handler)
	t.Cleanup(server.Close)
	for body, want := range map[string]string{
		`{"dir": "/new"}`:    `200 {"dir":"/new",`,
		`{"dir": "/there"}`:  `409 {"error":"it is there"}`,
		`{"dir": "/broken"}`: `500 {"error":"the disk does not take it"}`,
		`{"dir": "new"}`:     `400 {"error":"dir must be the absolute path of a folder that does not exist yet"}`,
		`{}`:                 `400 {"error":"dir must be`,
		``:                   `400 {"error":"dir must be`,
		`{"dir": `:           `400 {"error":`,
		`{"dir": "` + strings.Repeat("x", maxOrder) + `"}`: `400 {"error":"request too long or cut off"}`,
	} {
		resp, err := http.Post(server.URL+"/api/backup", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close() // read to its end
		if got := fmt.Sprint(resp.StatusCode, " ", string(bytes.TrimSpace(text))); err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%.40s: %s, not %s (%v)", body, got, want, err)
		}
	}
	slices.Sort(dirs)
	if got := fmt.Sprint(dirs); got != "[/broken /new /there]" {
		t.Errorf("copies were made to %s", got)
	}
}

// What is refused before anybody looks at it is told in plain text, all else as an object.
func TestErrorsAreProblems(t *testing.T) {
	t.Parallel()
	d, locked := sitDown(t, Options{}), sitDown(t, Options{Password: "p"})
	for _, test := range []struct {
		d            *desk
		method, path string
		origin, kind string
		status       int
		begin        string
	}{
		{locked, "GET", "/api/queues", "", problemType, 401, `{"title":"Unauthorized"`},
		{d, "POST", "/api/resume", "https://evil.example", problemType, 403, `{"title":"Forbidden"`},
		{d, "GET", "/api/nothing", "", problemType, 404, `{"title":"Not Found"`},
		{d, "DELETE", "/api/queues", "", problemType, 405, `{"title":"Method Not Allowed"`},
		{d, "GET", "/api/queues/none", "", "application/json", 404, `{"error":"`},
		{d, "GET", "/api/jobs?limit=x", "", "application/json", 400, `{"error":"`},
		{d, "GET", "/api/queues", "", "application/json", 200, `{"queues":[]}`},
		{d, "GET", "/readyz", "", "application/json", 200, `{"ready":true}`},
		{d, "GET", "/metrics", "", "text/plain", 200, "#"},
	} {
		req, err := http.NewRequest(test.method, test.d.url+test.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if test.origin != "" {
			req.Header.Set("Origin", test.origin)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close() // read to its end
		kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
		if err != nil || resp.StatusCode != test.status || kind != test.kind || !strings.HasPrefix(string(text), test.begin) {
			t.Errorf("%s %s: %d %s %.60q (%v)", test.method, test.path, resp.StatusCode, kind, text, err)
		}
	}
}
