package integration_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/workqclient"
)

// record is what the checker knows of one job.
type record struct {
	acked       bool   // its submission was acknowledged
	finishSent  bool   // a finish was on its way
	finishAcked bool   // and was acknowledged
	id          string // Workq's and Faktory's; Gearman's jobs have a handle
	handle      string
}

// ledger is the independent checker: it knows only what clients sent and what they were told.
type ledger struct {
	mu   sync.Mutex // guards jobs
	jobs map[string]*record
}

// submitting makes the record before the submission leaves.
func (l *ledger) submitting(body, id string) *record {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &record{id: id}
	l.jobs[body] = r
	return r
}

func (l *ledger) note(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// job is the record for a body as a worker sees it.
func (l *ledger) job(body string) *record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.jobs[strings.Trim(body, `[]"`)]
}

// Jobs go to two queues: workers take from one, what is in the other waits.
var loadQueues = []string{"load-worked", "load-waiting"}

func TestKillUnderLoadLosesNothingAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	books := &ledger{jobs: make(map[string]*record)}
	const rounds = 3
	for round := range rounds {
		var clients sync.WaitGroup
		for n := range 2 {
			tag := fmt.Sprintf("%d-%d", round, n)
			clients.Go(func() { loadGearman(b, books, "gearman-"+tag) })
			clients.Go(func() { loadFaktory(b, books, "faktory-"+tag) })
			clients.Go(func() { loadWorkq(b, books, "workq-"+tag) })
			clients.Go(func() { finishGearman(t, b, books) })
			clients.Go(func() { finishFaktory(t, b, books) })
			clients.Go(func() { finishWorkq(t, b, books) })
		}
		// The moment of the kill is what the test varies.
		time.Sleep(time.Second + rand.N(500*time.Millisecond))
		b.Crash()
		clients.Wait() // they end with their connections
		b.Restart()
	}
	books.compare(t, b)
}

// loadGearman keeps submissions in flight until the connection breaks.
func loadGearman(b *harness.Broker, books *ledger, tag string) {
	c, err := gearmanclient.Dial(b.Gearman)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }() // broken already
	const burst = 16
	for n := 0; ; n += burst {
		var packets []byte
		var sent []*record
		for i := n; i < n+burst; i++ {
			body := fmt.Sprintf("%s-%d", tag, i)
			sent = append(sent, books.submitting(body, ""))
			packets = gearmanclient.Append(packets, gearmanclient.SubmitJobBg, loadQueues[i%2], "", body)
		}
		if c.Write(packets) != nil {
			return
		}
		for _, r := range sent {
			p, err := c.Expect(gearmanclient.JobCreated, harness.Patience)
			if err != nil {
				return
			}
			books.note(func() { r.acked, r.handle = true, string(p.Data) })
		}
	}
}

func loadFaktory(b *harness.Broker, books *ledger, tag string) {
	c, err := harness.OpenFaktory(b, 10*time.Second)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }() // broken already
	for n := 0; ; n++ {
		body := fmt.Sprintf("%s-%d", tag, n)
		job := fktJob(loadQueues[n%2], body)
		job.Jid = newID()
		r := books.submitting(body, job.Jid)
		if c.Push(job) != nil {
			return
		}
		books.note(func() { r.acked = true })
	}
}

func loadWorkq(b *harness.Broker, books *ledger, tag string) {
	c, err := workqclient.Dial(b.Workq)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }() // broken already
	for n := 0; ; n++ {
		body := fmt.Sprintf("%s-%d", tag, n)
		job := wqJob(loadQueues[n%2], body)
		r := books.submitting(body, job.ID)
		if c.Add(job) != nil {
			return
		}
		books.note(func() { r.acked = true })
	}
}

// taken notes that a worker is about to finish a job, which must be one that was submitted and is not finished.
func (l *ledger) taken(t *testing.T, body string) *record {
	r := l.job(body)
	if r == nil {
		t.Errorf("a worker got %q, which nobody submitted", body)
		return &record{}
	}
	l.note(func() {
		if r.finishAcked {
			t.Errorf("a worker got %q again after its finish was acknowledged", body)
		}
		r.finishSent = true
	})
	return r
}

// finishGearman completes jobs; the protocol acknowledges no completion.
func finishGearman(t *testing.T, b *harness.Broker, books *ledger) {
	c, err := gearmanclient.Dial(b.Gearman)
	if err != nil || c.Send(gearmanclient.CanDo, loadQueues[0]) != nil {
		return
	}
	defer func() { _ = c.Close() }() // broken already
	for {
		handle, _, _, body, err := c.Grab(harness.Patience)
		if err != nil {
			return
		}
		books.taken(t, body)
		if c.Send(gearmanclient.WorkComplete, handle, "") != nil {
			return
		}
	}
}

func finishFaktory(t *testing.T, b *harness.Broker, books *ledger) {
	c, err := harness.OpenFaktory(b, 10*time.Second)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }() // broken already
	for {
		job, err := c.Fetch(loadQueues[0])
		if err != nil {
			return
		}
		if job == nil {
			continue
		}
		r := books.taken(t, fmt.Sprint(job.Args[0]))
		if c.Ack(job.Jid) != nil {
			return
		}
		books.note(func() { r.finishAcked = true })
	}
}

func finishWorkq(t *testing.T, b *harness.Broker, books *ledger) {
	c, err := workqclient.Dial(b.Workq)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }() // broken already
	for {
		l, err := c.Lease(harness.Patience, loadQueues[0])
		if err != nil {
			return
		}
		r := books.taken(t, string(l.Body))
		if c.Complete(l.ID, nil) != nil {
			return
		}
		books.note(func() { r.finishAcked = true })
	}
}

// compare drains the broker and holds what is there against the books.
func (l *ledger) compare(t *testing.T, b *harness.Broker) {
	t.Helper()
	found := make(map[string]int)
	for _, queue := range loadQueues {
		for _, body := range drainInOrder(t, b, queue) {
			found[strings.Trim(body, `[]"`)]++
		}
	}
	gearman, wq := harness.DialGearman(t, b), harness.DialWorkq(t, b)
	var acked, finished, held int
	for body, r := range l.jobs {
		n := found[body]
		delete(found, body)
		if n > 1 {
			t.Errorf("%s was handed out %d times", body, n)
		}
		switch {
		case r.finishAcked:
			finished++
			if n > 0 {
				t.Errorf("%s came back after its finish was acknowledged", body)
			}
		case r.acked && n == 0 && !r.finishSent:
			// Not ready: it may have been leased to a worker that was cut off before it heard of it.
			if !leasedStill(t, gearman, wq, r) {
				t.Errorf("%s was acknowledged and is lost", body)
			}
			held++
		}
		if r.acked {
			acked++
		}
	}
	for body := range found {
		t.Errorf("%s was never submitted", body)
	}
	t.Logf("%d submissions, %d acknowledged, %d finishes acknowledged, %d leased to nobody", len(l.jobs), acked, finished, held)
	if acked < 100 || finished < 20 {
		t.Error("too little happened before the kills to prove anything")
	}
	const workers = 3 * 2 * 3 // rounds, a worker of each kind twice
	if held > workers {
		t.Errorf("%d jobs leased to nobody, with %d workers", held, workers)
	}
}

// leasedStill says whether a job that is not ready is known as leased.
func leasedStill(t *testing.T, gearman *gearmanclient.Client, wq *workqclient.Client, r *record) bool {
	t.Helper()
	if r.handle != "" {
		check(t, gearman.Send(gearmanclient.GetStatus, r.handle))
		p, err := gearman.Expect(gearmanclient.StatusRes, harness.Patience)
		check(t, err)
		return p.Args(5)[2] == "1"
	}
	o, err := wq.InspectJob(r.id)
	if errors.Is(err, workqclient.ErrNotFound) {
		return false
	}
	check(t, err)
	return o.Value("state") == "4"
}
