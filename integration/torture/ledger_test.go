package torture_test

import (
	"strings"
	"sync"
	"testing"
)

// record is what the ledger knows about a job.
type record struct {
	body     string
	id       string // of Workq, Faktory and Conveyor jobs
	handle   string // of Gearman jobs
	number   string // of Beanstalk jobs
	later    bool   // it is not due during the test
	parked   bool   // a worker has buried, delayed or failed it
	family   bool   // it may wait for others
	acked    bool   // the submission was acknowledged
	endSent  bool   // a completion or removal was sent
	endAcked bool   // and was acknowledged
	life     int    // the broker's life in which it was last handed out; 0: never
}

// ledger is the independent checker: it knows only what clients sent and received.
type ledger struct {
	t       testing.TB
	workers int // of a life: each may be assigned one job that it never receives

	mu       sync.Mutex // guards the rest
	jobs     map[string]*record
	open     map[string]*record // acknowledged and not known to be finished
	life     int                // number of starts of the broker
	acks     int
	ends     int
	out      int // hand-outs
	lookedUp int // jobs looked up because they were not ready, over all rounds
}

func newLedger(t testing.TB) *ledger {
	return &ledger{t: t, workers: workersOfALife, jobs: make(map[string]*record), open: make(map[string]*record)}
}

// submitting creates the record before the submission is sent.
func (b *ledger) submitting(body, id string) *record {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &record{body: body, id: id}
	b.jobs[body] = r
	return r
}

// acked records that a submission was acknowledged. A worker may have received the job before.
func (b *ledger) acked(r *record, handle string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.acked, r.handle = true, handle
	b.acks++
	if !r.endAcked {
		b.open[r.body] = r
	}
}

// acknowledged is the number of acknowledged submissions.
func (b *ledger) acknowledged() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.acks
}

// tooLittle says that less happened than n kills need to prove anything. A busy machine needs more of them.
func (b *ledger) tooLittle(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.acks < 50*n || b.ends < 10*n
}

// handedOut records that a worker received a job. It reports a job that nobody submitted, one that is finished, and one
// that another worker holds.
func (b *ledger) handedOut(body string) *record {
	b.mu.Lock()
	defer b.mu.Unlock()
	body = strings.Trim(body, `[]"`)
	r := b.jobs[body]
	b.out++
	switch {
	case r == nil:
		b.t.Errorf("%q was handed out, which nobody submitted", body)
		return &record{body: body}
	case r.endAcked:
		b.t.Errorf("%s was handed out after its end was acknowledged", body)
	case r.life == b.life:
		b.t.Errorf("%s was handed out twice in one life of the broker", body)
	case r.later:
		b.t.Errorf("%s was handed out before its time", body)
	}
	r.life = b.life
	return r
}

// ending records that a completion or removal is sent.
func (b *ledger) ending(r *record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.endSent = true
}

// returning records that a worker gives a job back: it may be handed out again. parked says that it may also wait.
func (b *ledger) returning(r *record, parked bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.life, r.parked = 0, r.parked || parked
}

// ended records that the end was acknowledged: the job must never be handed out again.
func (b *ledger) ended(r *record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.endAcked = true
	b.ends++
	delete(b.open, r.body)
}

// started counts a start of the broker.
func (b *ledger) started() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.life++
}

// unseen are the jobs that must be in the broker although no worker received them: neither finished nor drained just
// now. Jobs whose end was sent when the broker was killed may exist or not.
func (b *ledger) unseen() []*record {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []*record
	for body, r := range b.open {
		if r.endSent {
			delete(b.open, body)
			continue
		}
		all = append(all, r)
	}
	b.lookedUp += len(all)
	return all
}
