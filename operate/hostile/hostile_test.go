package hostile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"broker/access"
	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/frontends"
	"broker/frontends/beanstalk"
	"broker/frontends/frontendtest"
	"broker/frontends/workq"
	"broker/operate/hostile"
)

// transcripts are the files in testdata: conversations with faults, and the log of the faults.
var transcripts = map[string]struct {
	rates  string
	seed   uint64
	front  func(core.Broker) frontends.Frontend
	events []string
}{
	"duplicate": {rates: "duplicate=1", front: newWorkq, events: []string{
		"fault 1: duplicate, submission 1 to ping, job " + id + "1: completion acknowledged and lost: delivered again",
	}},
	"expire": {rates: "expire=1", front: newWorkq, events: []string{
		"fault 1: expire, submission 1 to ping, job " + id + "1: lease ends after 269ms",
	}},
	"busy": {rates: "busy=0.5", front: newBeanstalk, events: []string{
		"fault 1: busy, submission 3 to ping: refused: the queue is full",
	}},
	"reorder": {rates: "reorder=0.5", front: newWorkq, events: []string{
		"fault 1: reorder, submission 1 to ping, job " + id + "1: held back for 80ms",
		"fault 2: reorder, submission 2 to ping, job " + id + "2: held back for 164ms",
	}},
	"late": {rates: "late=1", front: newWorkq, events: []string{
		"fault 1: late, submission 1 to ping, job " + id + "1: delivery delayed by 557ms",
	}},
	"drop-worker": {rates: "drop=1", front: newBeanstalk, events: []string{
		"fault 1: drop, submission 1 to ping, job 01b8dac5-b400-7add-8179-b061e0c0e0d0: reply to the worker: connection closed after 7 bytes",
	}},
	"drop-before": {rates: "drop=1", front: newWorkq, events: []string{
		"fault 1: drop, submission 1 to a, job " + id + "1: connection closed before the submission took effect",
	}},
	"drop-reply": {rates: "drop=1", front: newWorkq, events: []string{
		"fault 1: drop, submission 1 to pong, job " + id +
			"1: reply to the submission: connection closed after 2 bytes",
	}},
	"drop-lease": {rates: "drop=1", front: newBeanstalk, events: []string{
		"fault 1: drop, submission 1 to c: connection closed before the submission took effect",
		"fault 2: drop, submission 2 to c, job 01b8dac5-b400-7add-8179-b061e0c0e0d0: delivery: connection closed after 5 bytes",
	}},
}

// id is the prefix of the ids in testdata.
const id = "6ba7b810-9dad-41d1-80b4-00000000000"

func newWorkq(b core.Broker) frontends.Frontend {
	return workq.New(access.Unrestricted(b, core.Workq), workq.Options{})
}

func newBeanstalk(b core.Broker) frontends.Frontend {
	return beanstalk.New(access.Unrestricted(b, core.Beanstalk), beanstalk.Options{})
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.wire")
	if err != nil || len(files) != len(transcripts) {
		t.Fatalf("%d transcripts, want %d (%v)", len(files), len(transcripts), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".wire")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			this := transcripts[name]
			frontendtest.Script{Stage: func(t testing.TB) *frontendtest.Stage {
				return open(t, this.rates, this.seed, this.front, this.events)
			}}.Play(t, file)
		})
	}
}

// open builds a stage with a hostile broker that must have done events by the end of the test.
func open(
	t testing.TB, rates string, seed uint64, front func(core.Broker) frontends.Frontend, events []string,
) *frontendtest.Stage {
	t.Helper()
	stage, log := judged(t, rates, seed, front)
	t.Cleanup(func() {
		var got []string
		for _, e := range log.Events() {
			got = append(got, e.String())
		}
		if !slices.Equal(got, events) {
			t.Errorf("faults:\n got %q\nwant %q", got, events)
		}
	})
	return stage
}

// TestBrokerWithoutFaultsChangesNothing plays the transcripts of front-ends through the wrappers, without faults. It
// skips transcripts with a restart, because its broker is in memory.
func TestBrokerWithoutFaultsChangesNothing(t *testing.T) {
	t.Parallel()
	for name, front := range map[string]func(core.Broker) frontends.Frontend{
		"workq": newWorkq, "beanstalk": newBeanstalk,
	} {
		files, err := filepath.Glob(filepath.Join("../../frontends", name, "testdata/*.wire"))
		if err != nil || len(files) < 5 {
			t.Fatalf("%s: %d transcripts (%v)", name, len(files), err)
		}
		for _, file := range files {
			if text, err := os.ReadFile(file); err != nil || bytes.Contains(text, []byte("\nrestart")) {
				continue
			}
			t.Run(filepath.Join(name, filepath.Base(file)), func(t *testing.T) {
				t.Parallel()
				frontendtest.Script{Stage: func(t testing.TB) *frontendtest.Stage {
					return open(t, "", 0, front, nil)
				}}.Play(t, file)
			})
		}
	}
}

// TestSameSeedAndRequestsGiveSameFaults submits the same jobs with other ids and other queues between them.
func TestSameSeedAndRequestsGiveSameFaults(t *testing.T) {
	t.Parallel()
	run := func(seed uint64, first int, others bool) (faults []string) {
		r := hostile.Rates{hostile.Busy: 0.3, hostile.Reorder: 0.3, hostile.Duplicate: 0.3, hostile.Expire: 0.2}
		var log *hostile.Log
		stage := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
			log = hostile.NewLog(seed, r, nil)
			h := hostile.New(b, hostile.Options{Log: log})
			return h.Frontend(newWorkq(h))
		}, frontendtest.InMemory)
		c := stage.Dial("client")
		for i := range 40 {
			if others {
				c.Send(fmt.Sprintf("add %s%d other 9000 60000 1\r\nx\r\n", id[:len(id)-4], 10_000+i))
				c.Rest()
			}
			name := fmt.Sprintf("%s%d", id[:len(id)-4], first+i)
			c.Send("add " + name + " mail 9000 60000 1\r\nx\r\n")
			c.Rest()
			stage.Advance(time.Second)
			c.Send("lease mail 0\r\ncomplete " + name + " 1\r\nx\r\n")
			c.Rest()
		}
		for _, e := range log.Events() {
			if e.Queue == "mail" {
				faults = append(faults, fmt.Sprint(e.Fault, e.Submission, e.Detail))
			}
		}
		return faults
	}
	want := run(7, 20_000, false)
	if len(want) < 20 {
		t.Fatalf("%d faults", len(want))
	}
	if got := run(7, 30_000, true); !slices.Equal(got, want) {
		t.Errorf("again:\n got %q\nwant %q", got, want)
	}
	if got := run(8, 20_000, false); slices.Equal(got, want) {
		t.Errorf("another seed gives the same faults")
	}
}

func TestFaultsAreServed(t *testing.T) {
	t.Parallel()
	e, err := engine.Open(engine.Options{Durability: engine.None, Clock: coretest.NewClock(), ManualTimers: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Shutdown() }) // nothing is stored
	log := hostile.NewLog(42, hostile.Rates{hostile.Busy: 1}, nil)
	h := hostile.New(e, hostile.Options{Log: log})
	for _, r := range core.DoOnce(h, core.HTTP, &core.Submit{Tag: 1, Job: &core.Job{Queue: "mail"}}) {
		if !errors.Is(r.Err, core.ErrFull) {
			t.Errorf("got %v, want the queue to be full", r.Err)
		}
	}
	page := httptest.NewRecorder()
	log.ServeHTTP(page, httptest.NewRequest("GET", "/api/v1/faults", nil))
	var got struct {
		Seed   uint64
		Rates  string
		Faults []hostile.Event
	}
	if err := json.Unmarshal(page.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := hostile.Event{
		Number: 1, Fault: "busy", Subject: hostile.Subject{Queue: "mail", Submission: 1, Protocol: "http"},
		Detail: "refused: the queue is full",
	}
	if got.Seed != 42 || got.Rates != "busy=1" || !slices.Equal(got.Faults, []hostile.Event{want}) {
		t.Errorf("got %+v", got)
	}
}

// TestOperationsWithoutTagMeetFaultsToo is for clients over HTTP, which give their operations no tags.
func TestOperationsWithoutTagMeetFaultsToo(t *testing.T) {
	t.Parallel()
	e, err := engine.Open(engine.Options{Durability: engine.None, Clock: coretest.NewClock(), ManualTimers: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Shutdown() }) // nothing is stored
	h := hostile.New(e, hostile.Options{Log: hostile.NewLog(1, hostile.Rates{hostile.Duplicate: 1}, nil)})
	core.DoOnce(h, core.HTTP, &core.Submit{Job: &core.Job{Queue: "mail"}})
	for run := range 3 {
		job := core.DoOnce(h, core.HTTP, &core.Lease{Queues: []string{"mail"}, Holder: core.HeldByNobody})[0]
		want := core.Assigned
		if run == 2 {
			want = core.NothingReady
		}
		if job.Kind != want {
			t.Fatalf("lease %d: got %v, want %v", run, job.Kind, want)
		}
		if run == 2 {
			break
		}
		done := core.DoOnce(h, core.HTTP, &core.Complete{Ref: core.Ref{Seq: job.Seq}, Authority: core.ByLeased})
		if len(done) != 1 || done[0].Kind != core.Accepted {
			t.Fatalf("completion %d: got %+v", run, done)
		}
	}
}

func TestRates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "none", "none": "none", "drop=0.01, duplicate=1": "duplicate=1,drop=0.01", "late=0": "none",
		"slow=1": `unknown fault "slow": the faults are duplicate, drop, late, expire, busy, reorder, jump`,
		"drop":   `drop: "" is not a number from 0 to 1`, "drop=2": `drop: "2" is not a number from 0 to 1`,
		"drop=NaN": `drop: "NaN" is not a number from 0 to 1`,
	} {
		r, err := hostile.ParseRates(text)
		if got := r.String(); err != nil && err.Error() != want || err == nil && got != want {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
}
