package torture_test

import (
	"strings"
	"sync"
	"testing"
)

// record is what the checker knows of one job.
type record struct {
	body     string
	id       string // of Workq's and Faktory's jobs
	handle   string // of Gearman's
	later    bool   // it is not due before the test is over
	acked    bool   // its submission was acknowledged
	endSent  bool   // a finish or a removal was on its way
	endAcked bool   // and was acknowledged
	life     int    // of the broker, in which it was last handed out; 0: never
}

// books is the independent checker: it knows only what clients sent and what they were told.
type books struct {
	t testing.TB

	mu     sync.Mutex // guards the rest
	jobs   map[string]*record
	open   map[string]*record // those that are acknowledged and not known to be ended
	life   int                // counts the starts of the broker
	acks   int
	ends   int
	out    int // hand-outs
	limbos int // looked up because they were not ready, over all rounds
}

func newBooks(t testing.TB) *books {
	return &books{t: t, jobs: make(map[string]*record), open: make(map[string]*record)}
}

// submitting makes the record before the submission leaves.
func (b *books) submitting(body, id string) *record {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &record{body: body, id: id}
	b.jobs[body] = r
	return r
}

// acked notes that the broker has promised to keep a job. A worker may have been faster.
func (b *books) acked(r *record, handle string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.acked, r.handle = true, handle
	b.acks++
	if !r.endAcked {
		b.open[r.body] = r
	}
}

// acknowledged is how many jobs the broker has promised to keep.
func (b *books) acknowledged() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.acks
}

// handedOut notes that somebody got a job, and finds what must never be: a job that nobody submitted, one that has ended,
// one that somebody else holds.
func (b *books) handedOut(body string) *record {
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

// ending notes that a finish or a removal is on its way.
func (b *books) ending(r *record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.endSent = true
}

// ended notes that the broker has promised never to hand a job out again.
func (b *books) ended(r *record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.endAcked = true
	b.ends++
	delete(b.open, r.body)
}

// born counts a start of the broker.
func (b *books) born() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.life++
}

// unseen are the jobs that must be in the broker though nobody got them: neither finished, nor drained just now. Those
// whose end was on its way when the broker died may be or not, and are of no interest unless they turn up.
func (b *books) unseen() []*record {
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
	b.limbos += len(all)
	return all
}
