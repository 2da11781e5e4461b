//go:build nightly

package integration_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/harness"
)

// sizeOf is the size of a test; an environment variable such as FLEET_JOBS overrides the usual one.
func sizeOf(t testing.TB, variable string, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, not a number of jobs", variable, text)
	}
	return n
}

// usualFleetJobs take about 20 seconds. With more jobs, reservations that the kill has orphaned are left to expire.
const usualFleetJobs = 3000

func TestFleetOfWorkersSurvivesAKillAndARestart(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	harness.NeedNode(t)
	b := start(t)
	jobs := sizeOf(t, "FLEET_JOBS", usualFleetJobs)
	day := &fleet{t: t, b: b, l: &ledger{jobs: make(map[string]entry)}, patient: jobs > usualFleetJobs}
	for range 2 {
		serves := []string{"critical*5:Shift=shift", "default*3:Shift=shift", "low*1:Shift=shift", "nodebulk*1=shift"}
		day.workers = append(day.workers, goWorker(t, b, serves...), nodeWorker(t, b, serves...))
	}
	for _, e := range nodeClient(t, b, "bulk", "nodebulk", "50") {
		if e.Event == "created" {
			day.l.jobs[e.ID] = entry{kind: "node's bulk", fate: mustEnd}
		}
	}

	stop, over := make(chan struct{}), make(chan struct{})
	go day.operate(stop, over) // ends with stop, below
	pushed := day.produce(jobs, 2)
	day.awaitJobs(jobs / 3)
	day.killedAt = time.Now().UnixMilli()
	b.Crash()
	b.Restart()
	day.backAt = time.Now().UnixMilli()
	day.awaitJobs(2 * jobs / 3)
	day.restart()
	check(t, <-pushed)
	day.awaitQuiet(harness.Patience + time.Duration(jobs)*10*time.Millisecond)
	close(stop)
	<-over
	day.stopWorkers()
	day.check()
}

// fleet is a broker with its workers and the ledger.
type fleet struct {
	t       *testing.T
	b       *harness.Broker
	l       *ledger
	workers []*harness.Child
	patient bool

	killedAt, backAt int64 // Unix milliseconds
	helped           int   // orphaned reservations that the test has failed
}

// produce starts producers; the channel receives their error when all have ended.
func (f *fleet) produce(jobs, producers int) <-chan error {
	ended := make(chan error, 1)
	errs := make([]error, producers)
	var all sync.WaitGroup
	for i := range producers {
		all.Go(func() { // ends with the last job
			// The arguments differ: unique jobs of two producers are different.
			p := &producer{b: f.b, l: f.l, turns: i * 100_000_000}
			defer p.close()
			errs[i] = p.work(jobs)
		})
	}
	go func() { // ends with the producers
		all.Wait()
		ended <- errors.Join(errs...)
	}()
	return ended
}

// operate requeues the retries all the time, so that nobody waits for Faktory's backoff.
func (f *fleet) operate(stop <-chan struct{}, over chan<- struct{}) {
	defer close(over)
	p := &producer{b: f.b}
	defer p.close()
	for {
		select {
		case <-stop:
			return
		case <-time.After(200 * time.Millisecond):
		}
		if _, err := p.retry(func(c *faktory.Client) error {
			return c.Requeue(faktory.Retries, faktory.Everything)
		}); err != nil {
			f.t.Errorf("requeue: %v", err)
		}
	}
}

func (f *fleet) awaitJobs(n int) {
	f.t.Helper()
	deadline := time.Now().Add(harness.Patience + time.Duration(n)*10*time.Millisecond)
	for f.l.size() < n {
		if time.Now().After(deadline) {
			f.t.Fatalf("%d of %d jobs pushed", f.l.size(), n)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// restart drains the broker, waits for the running jobs, and restarts it.
func (f *fleet) restart() {
	f.t.Helper()
	f.releaseStranded()
	status, answer := post(f.t, f.b, "/api/v1/drain", "")
	equal(f.t, "drain: "+answer, status, http.StatusOK)
	deadline := time.Now().Add(2 * harness.Patience)
	for len(f.list("leased")) > 0 {
		if time.Now().After(deadline) {
			f.t.Fatal("jobs are still leased long after the broker was drained")
		}
		time.Sleep(50 * time.Millisecond)
		f.releaseStranded()
	}
	code, _ := f.b.Terminate()
	equal(f.t, "exit code", code, 0)
	f.b.Restart()
}

// releaseStranded fails jobs that no worker will finish: those reserved before the restart whose replies were lost. In
// long runs they are left to expire after a minute.
func (f *fleet) releaseStranded() {
	f.t.Helper()
	if f.patient || time.Now().UnixMilli() < f.backAt+3000 { // the Go worker repeats its reports within two seconds
		return
	}
	c := dialFaktory(f.t, f.b)
	for _, job := range f.list("leased") {
		if job.LeasedAt.UnixMilli() > f.backAt {
			continue
		}
		if err := c.Fail(job.ID, errors.New("its worker has forgotten it"), nil); err == nil {
			f.helped++
		}
	}
	check(f.t, c.Close())
}

type fleetRow struct {
	ID       string    `json:"id"`
	LeasedAt time.Time `json:"leased_at"`
}

// list lists all jobs in a state.
func (f *fleet) list(state string) (rows []fleetRow) {
	f.t.Helper()
	for cursor := ""; ; {
		status, body, err := f.b.Get("/api/v1/jobs?limit=1000&state=" + state + "&cursor=" + cursor)
		check(f.t, err)
		equal(f.t, "status", status, http.StatusOK)
		var page struct {
			Jobs   []fleetRow `json:"jobs"`
			Cursor string     `json:"cursor"`
		}
		check(f.t, json.Unmarshal([]byte(body), &page))
		rows = append(rows, page.Jobs...)
		if cursor = page.Cursor; cursor == "" {
			return rows
		}
	}
}

// awaitQuiet waits until no job is left.
func (f *fleet) awaitQuiet(patience time.Duration) {
	f.t.Helper()
	c := dialFaktory(f.t, f.b)
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		d := fktState(f.t, c).Data
		if d.TotalEnqueued+d.Sets["scheduled"]+d.Sets["retries"]+d.Sets["working"] == 0 {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("still not done: %d waiting, sets %v", d.TotalEnqueued, d.Sets)
		}
		f.releaseStranded()
	}
}

// stopWorkers stops the workers.
func (f *fleet) stopWorkers() {
	f.t.Helper()
	for _, w := range f.workers {
		check(f.t, w.Signal(syscall.SIGTERM))
	}
	for _, w := range f.workers {
		code, err := w.Wait(harness.Patience)
		check(f.t, err)
		equal(f.t, "exit code of "+w.Name, code, 0)
	}
}

// check compares the ledger with the broker and the workers.
func (f *fleet) check() {
	t, l := f.t, f.l
	t.Helper()
	runs := readFleet(t, f.workers)
	repeated := l.audit(t, runs, f.killedAt, f.backAt)
	c := dialFaktory(t, f.b)
	l.auditBatches(t, c, runs)
	var dead []string
	for _, row := range f.list("dead") {
		dead = append(dead, row.ID)
	}
	slices.Sort(dead)
	equal(t, "dead", dead, l.jidsOf(mustDie))

	d := fktState(t, c).Data
	ended, twice := uint64(len(l.jidsOf(mustEnd))), uint64(0)
	for _, e := range l.jobs {
		if e.twice {
			twice++ // it may be counted twice
		}
	}
	equal(t, "INFO's dead", d.Sets["dead"], uint64(len(dead)))
	if ok := d.TotalProcessed - d.TotalFailures; ok < ended || ok > ended+twice {
		t.Errorf("INFO reports %d processed jobs, %d of them failures; %d jobs had to succeed", d.TotalProcessed,
			d.TotalFailures, ended)
	}
	// Orphaned jobs have failed once more: by releaseStranded, or because they expired.
	least, most := uint64(l.fails()), uint64(l.fails()+f.helped)
	if f.patient {
		most = least + f.inFlight()
	}
	if d.TotalFailures < least || d.TotalFailures > most {
		t.Errorf("INFO reports %d failures, not %d to %d", d.TotalFailures, least, most)
	}
	t.Logf("%d jobs, %d batches: %d done (%d more than once), %d dead, %d refused; %d failures; %d orphaned by the kill",
		len(l.jobs), len(l.batches), ended, repeated, len(dead), len(l.jidsOf(mustStay)), d.TotalFailures, f.helped)
	if limit := int(f.inFlight()); repeated > limit {
		t.Errorf("%d jobs were done more than once; the kill explains at most %d", repeated, limit)
	}
}

// inFlight is how many jobs the workers may hold at once.
func (f *fleet) inFlight() uint64 { return 2*8 + 2*4 }
