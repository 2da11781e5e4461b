package integration_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
)

// handOuts records which workers received which jobs.
type handOuts struct {
	sync.Mutex // guards the rest
	seen       map[string]int
	total      int
	workers    map[string]*workerShare
}

// workerShare counts the jobs of one worker, and the most jobs that others received between two of them.
type workerShare struct{ jobs, last, gap int }

// of returns the function that records the jobs of one worker.
func (h *handOuts) of(name string) func(body string) {
	h.Lock()
	defer h.Unlock()
	share := &workerShare{}
	h.workers[name] = share
	return func(body string) {
		h.Lock()
		defer h.Unlock()
		h.seen[strings.Trim(body, `[]"`)]++
		h.total++
		share.jobs++
		share.gap = max(share.gap, h.total-share.last)
		share.last = h.total
	}
}

// TestMixedWaitersGetEveryJobExactlyOnce submits jobs by three protocols to nine workers of three protocols, which are
// idle half of the time and overloaded the other half. Every job is handed out once. The order of the workers can only
// be checked with a fake clock, as frontends/crossprotocol does.
func TestMixedWaitersGetEveryJobExactlyOnce(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{Durability: "none"})
	const each = 3
	jobs := 20_000
	if harness.Nightly {
		jobs = 100_000
	}
	h := &handOuts{seen: make(map[string]int, jobs), workers: make(map[string]*workerShare)}
	var workers sync.WaitGroup // the test waits for them
	for i := range each {
		gearman, fkt, wq := h.of(fmt.Sprint("gearman-",
			i)), h.of(fmt.Sprint("faktory-", i)), h.of(fmt.Sprint("workq-", i))
		workers.Go(func() { gearmanUntilStop(t, b, gearman) })
		workers.Go(func() { faktoryUntilStop(t, b, fkt) })
		workers.Go(func() { workqUntilStop(t, b, wq) })
	}
	begin := time.Now()
	submitMixed(t, b, jobs)
	wq := harness.DialWorkq(t, b)
	for range 3 * each { // each worker ends with the first of these jobs
		check(t, wq.Add(wqJob("everyone", "stop", "-priority=-1")))
	}
	ended := make(chan struct{})
	go func() { // ends with the workers
		workers.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(2 * harness.Patience):
		t.Fatal("the workers did not receive all jobs")
	}
	for i := range jobs {
		if n := h.seen[fmt.Sprint("job-", i)]; n != 1 {
			t.Fatalf("job %d was handed out %d times", i, n)
		}
	}
	h.checkShares(t, jobs, time.Since(begin))
}

// checkShares logs how many jobs each worker received; in make nightly they must be about the same.
func (h *handOuts) checkShares(t *testing.T, jobs int, took time.Duration) {
	t.Helper()
	names := make([]string, 0, len(h.workers))
	for name := range h.workers {
		names = append(names, name)
	}
	slices.Sort(names)
	t.Logf("%d jobs in %v", jobs, took.Round(time.Millisecond))
	for _, name := range names {
		w := h.workers[name]
		t.Logf("%s: %d jobs, at most %d of others in between", name, w.jobs, w.gap)
		if !harness.Nightly { // on a busy machine the test starves some of its workers itself
			continue
		}
		if w.jobs < jobs/len(names)/2 {
			t.Errorf("%s received %d of %d jobs, with %d workers", name, w.jobs, jobs, len(names))
		}
		if w.gap > 4*jobs/100 {
			t.Errorf("%s waited while others received %d jobs", name, w.gap)
		}
	}
}

// submitMixed submits jobs by the three protocols in turn: a part one by one, so that workers wait for jobs; then as
// many in bulk, so that jobs wait for workers; and so on.
func submitMixed(t *testing.T, b *harness.Broker, jobs int) {
	t.Helper()
	const bulk = 300
	stretch := jobs / 10
	d := open(t, b)
	for n := 0; n < jobs; {
		if n/stretch%2 == 0 {
			d.submitOne(t, n)
			n++
			continue
		}
		last := min(n+bulk, (n/stretch+1)*stretch, jobs)
		d.submitBulk(t, n, last)
		n = last
	}
}

func (d clients) submitOne(t *testing.T, n int) {
	t.Helper()
	switch body := fmt.Sprint("job-", n); n % 3 {
	case 0:
		_, err := d.gearman.Submit(gearmanclient.SubmitJobBg, "everyone", "", body)
		check(t, err)
	case 1:
		check(t, d.workq.Add(wqJob("everyone", body)))
	default:
		check(t, d.faktory.Push(fktJob("everyone", body)))
	}
}

// submitBulk submits the jobs from first up to last, a third by each protocol, and then reads all replies.
func (d clients) submitBulk(t *testing.T, first, last int) {
	t.Helper()
	var packets, lines []byte
	var units []*faktory.Job
	counts := [3]int{}
	for n := first; n < last; n++ {
		body := fmt.Sprint("job-", n)
		counts[n%3]++
		switch n % 3 {
		case 0:
			packets = gearmanclient.Append(packets, gearmanclient.SubmitJobBg, "everyone", "", body)
		case 1:
			lines = fmt.Appendf(lines, "add %s everyone 60000 600000 %d\r\n%s\r\n", newID(), len(body), body)
		default:
			units = append(units, fktJob("everyone", body))
		}
	}
	check(t, d.gearman.Write(packets))
	check(t, d.workq.Send(lines))
	refused, err := d.faktory.PushBulk(units)
	check(t, err)
	equal(t, "refused", len(refused), 0)
	for range counts[0] {
		_, err := d.gearman.Expect(gearmanclient.JobCreated, harness.Patience)
		check(t, err)
	}
	for range counts[1] {
		line, err := d.workq.Line(0)
		check(t, err)
		equal(t, "add", line, "+OK")
	}
}

func gearmanUntilStop(t *testing.T, b *harness.Broker, note func(body string)) {
	w, err := gearmanclient.Dial(b.Gearman)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = w.Close() }() // everything was acknowledged
	if err := w.Send(gearmanclient.CanDo, "everyone"); err != nil {
		t.Error(err)
	}
	for {
		handle, _, _, body, err := w.Grab(2 * harness.Patience)
		if err == nil {
			err = w.Send(gearmanclient.WorkComplete, handle, "")
		}
		if err != nil {
			t.Error("gearman worker: ", err)
			return
		}
		if body == "stop" {
			// The completion has no reply; the echo shows that it was received.
			if err := w.Send(gearmanclient.EchoReq, "done"); err != nil {
				t.Error(err)
			}
			_, _ = w.Read(harness.Patience)
			return
		}
		note(body)
	}
}

func faktoryUntilStop(t *testing.T, b *harness.Broker, note func(body string)) {
	c, err := harness.OpenFaktory(b, harness.Patience)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = c.Close() }() // everything was acknowledged
	for {
		job, err := c.Fetch("everyone")
		if job == nil && err == nil {
			continue
		}
		if err == nil {
			err = c.Ack(job.Jid)
		}
		if err != nil {
			t.Error("faktory worker: ", err)
			return
		}
		if job.Args[0] == "stop" {
			return
		}
		note(fmt.Sprint(job.Args[0]))
	}
}

func workqUntilStop(t *testing.T, b *harness.Broker, note func(body string)) {
	c := harness.DialWorkq(t, b)
	for {
		l, err := c.Lease(2*harness.Patience, "everyone")
		if err == nil {
			err = c.Complete(l.ID, nil)
		}
		if err != nil {
			t.Error("workq worker: ", err)
			return
		}
		if string(l.Body) == "stop" {
			return
		}
		note(string(l.Body))
	}
}
