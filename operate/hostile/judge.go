package hostile

import (
	"errors"
	"fmt"
	"hash/crc64"
	"slices"
	"sync"
	"sync/atomic"

	"broker/core"
)

const (
	maxJudged = 1_000_000 // jobs that are watched at the same time
	maxOpen   = 8         // deliveries of a job whose worker may still say something
)

// judge watches what workers do with their jobs. It blames no worker for what a fault has caused: a delivery that the
// worker never got, a lease that ended early, an end that another worker was faster with. It forgets a job that ended
// without a mistake. Any goroutine may use it.
type judge struct {
	mu        sync.Mutex // guards the fields below
	jobs      map[uint64]*history
	byID      map[string]*history // the delivered ones
	flawless  int                 // jobs that ended without a mistake
	unwatched int                 // jobs that came while too many were watched

	inspect atomic.Pointer[func(seq uint64) (leasedAt core.Instant)] // nil: no broker runs any more
}

// history is what workers have said about one job.
type history struct {
	Subject
	open  []delivery // whose workers have said nothing yet, oldest first
	count int        // deliveries
	said  bool       // a worker has said something
	ended bool       // the broker has taken an end for true

	completed int    // how often workers have completed it
	result    digest // of the first completion

	different, late, forgotten string // the mistakes; empty: none
}

// delivery is a lease of a job whose worker has said nothing yet about its end.
type delivery struct {
	holder   *client
	leasedAt core.Instant
	at       core.Instant // monotonic
	lapsed   bool         // the job was delivered again since
	excused  bool         // a fault explains silence and late words
	result   digest       // of the data that the worker has sent
}

// forgives reports whether a fault explains silence and late words of the worker.
func (d *delivery) forgives() bool {
	return d.excused || !d.lapsed && d.at <= core.Instant(d.holder.disturbed.Load())
}

// digest is that of a result, whose parts may come one by one.
type digest struct {
	sum  uint64
	size int
}

// sums is the polynomial of the sums of digests.
var sums = crc64.MakeTable(crc64.ECMA)

func (d digest) add(p []byte) digest { return digest{crc64.Update(d.sum, sums, p), d.size + len(p)} }

func newJudge() *judge {
	return &judge{jobs: make(map[uint64]*history), byID: make(map[string]*history)}
}

// submitted begins to watch a job. A worker may have got it already.
func (j *judge) submitted(of Subject) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if h := j.jobs[of.Seq]; h != nil {
		h.Subject = of
		return
	}
	j.watch(of)
}

func (j *judge) watch(of Subject) *history {
	if len(j.jobs) >= maxJudged {
		j.unwatched++
		return nil
	}
	h := &history{Subject: of}
	j.jobs[of.Seq] = h
	return h
}

// deliver notes that a client has got a job. Earlier deliveries of this job have ended.
func (j *judge) deliver(c *client, r *core.Reply, now core.Instant) {
	j.mu.Lock()
	defer j.mu.Unlock()
	h := j.jobs[r.Seq]
	if h == nil { // a schedule has made it, or it ended and was put back
		if h = j.watch(Subject{Queue: r.Job.Queue, Protocol: r.Job.Origin.String(), Seq: r.Seq}); h == nil {
			return
		}
	}
	h.Job = r.Job.Identity()
	j.byID[h.Job] = h
	for i := range h.open {
		d := &h.open[i]
		d.excused, d.lapsed = d.forgives(), true
	}
	if len(h.open) == maxOpen {
		h.abandon(&h.open[0])
		h.open = slices.Delete(h.open, 0, 1)
	}
	h.count++
	h.ended = false
	h.open = append(h.open, delivery{holder: c, leasedAt: r.Lease.LeasedAt, at: now})
}

// excuse notes that a fault hit the newest delivery of a job.
func (j *judge) excuse(seq uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if h := j.jobs[seq]; h != nil && len(h.open) > 0 {
		h.open[len(h.open)-1].excused = true
	}
}

// silent says that a delivery came to nothing.
const silent = "taken, and not mentioned again"

// abandon notes that the worker of a delivery never said anything.
func (h *history) abandon(d *delivery) {
	if !d.forgives() {
		h.forgotten = silent
	}
}

// heard notes an operation about a job and how it ended; lost says that a fault undoes it.
func (j *judge) heard(c *client, op core.Op, err error, now core.Instant, lost bool) {
	said, ref, leasedAt := wordOf(op, now)
	late := lostLease(err)
	if said == nothing || err != nil && (!late || said == givenBack || said == removed) {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	h := j.jobs[ref.Seq]
	if ref.Seq == 0 {
		h = j.byID[ref.ID]
	}
	if h == nil {
		return
	}
	i := h.from(c, leasedAt, late)
	if said == removed && i >= 0 && h.open[i].holder.id != c.id {
		h.open[i].excused = true // somebody else has removed it
		i = -1
	}
	if data, sends := op.(*core.SendData); sends {
		if i >= 0 {
			h.open[i].result = h.open[i].result.add(data.Data)
		}
		return
	}
	if i >= 0 {
		d := h.open[i]
		h.open = slices.Delete(h.open, i, i+1)
		h.word(&d, op, said, late)
	}
	if err == nil && !lost && (said == completed || said == removed) {
		h.ended = true
		for i := range h.open {
			d := &h.open[i]
			d.excused = d.excused || !d.lapsed // its lease ends because another worker was faster
		}
	}
	if h.ended && len(h.open) == 0 && h.innocent() {
		j.flawless++
		delete(j.jobs, h.Seq)
		delete(j.byID, h.Job)
	}
}

// from returns the index of the delivery that a word of a client is about; -1: none. What names neither its connection
// nor its lease is about the oldest delivery if it came late, otherwise about the newest.
func (h *history) from(c *client, leasedAt core.Instant, late bool) int {
	for i := range h.open {
		if d := &h.open[i]; leasedAt != 0 && d.leasedAt == leasedAt || leasedAt == 0 && d.holder.id == c.id {
			return i
		}
	}
	if late && len(h.open) > 0 {
		return 0
	}
	return len(h.open) - 1
}

// word notes what a worker says about the end of a delivery.
func (h *history) word(d *delivery, op core.Op, said word, late bool) {
	h.said = true
	if said == givenBack {
		return
	}
	if (late || d.lapsed) && !d.forgives() {
		h.late = fmt.Sprintf("%s after its lease was lost", said)
	}
	switch op := op.(type) {
	case *core.Fail:
		if h.completed > 0 {
			h.different = fmt.Sprintf("completed with a result (%d B), then failed", h.result.size)
		}
		return
	case *core.Complete:
		d.result = d.result.add(op.Result)
	}
	switch h.completed++; {
	case h.completed == 1:
		h.result = d.result
	case h.result != d.result:
		h.different = fmt.Sprintf("completed with a result (%d B), then with another (%d B)", h.result.size, d.result.size)
	}
}

func (h *history) innocent() bool {
	return h.different == "" && h.late == "" && h.forgotten == "" && h.completed < 2
}

// word is what an operation says about the end of a delivery.
type word uint8

const (
	nothing   word = iota
	completed      // done
	failed         // tried in vain
	givenBack      // not done, for another worker
	removed        // deleted
	sent           // not ended, but a part of the result
)

func (w word) String() string {
	return [...]string{"", "completed", "failed", "given back", "deleted", ""}[w]
}

// wordOf returns what an operation says, about which job, and about which lease if it names one.
func wordOf(op core.Op, now core.Instant) (said word, ref core.Ref, leasedAt core.Instant) {
	switch op := op.(type) {
	case *core.Complete:
		return completed, op.Ref, op.If.LeasedAt
	case *core.Fail:
		return failed, op.Ref, op.If.LeasedAt
	case *core.Release:
		return givenBack, op.Ref, 0
	case *core.Move:
		return givenBack, op.Ref, op.If.LeasedAt
	case *core.Report:
		if op.LeaseUntil != 0 && op.LeaseUntil <= now {
			return givenBack, op.Ref, op.If.LeasedAt
		}
	case *core.Cancel:
		if op.Running == core.RunningRemove {
			return removed, op.Ref, op.If.LeasedAt
		}
	case *core.SendData:
		if !op.Warning {
			return sent, op.Ref, 0
		}
	}
	return nothing, core.Ref{}, 0
}

// lostLease reports whether an operation was refused because its client does not hold the lease, or no more.
func lostLease(err error) bool {
	return slices.ContainsFunc([]error{
		core.ErrNotFound, core.ErrNotLeased, core.ErrNotHolder, core.ErrFinished, core.ErrConflict,
	}, func(kind error) bool { return errors.Is(err, kind) })
}
