//go:build nightly

package integration_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/harness"
)

// What may become of a job that was pushed.
const (
	mustEnd  = "done"    // acknowledged: it is done at least once
	mustDie  = "dead"    // acknowledged, and fails until it is in the dead set
	mustStay = "refused" // not unique: nobody ever sees it
)

// entry is a job in the books.
type entry struct {
	kind  string
	fate  string
	fails int  // how often it is told to fail
	twice bool // the answer to a push was lost, and the job was pushed again
}

// batchEntry is a batch in the books.
type batchEntry struct {
	bid, complete, success string
	members                []string
}

// books are what the producers have been promised, kept apart from everything that the broker says.
type books struct {
	mu      sync.Mutex // guards the rest
	jobs    map[string]entry
	batches []batchEntry
}

func (l *books) note(job *faktory.Job, kind, fate string, lost bool) {
	e := entry{kind: kind, fate: fate, twice: lost}
	if fails, ok := job.GetCustom("fails"); ok && fate == mustEnd {
		e.fails = fails.(int)
	}
	if fate == mustDie {
		e.fails = 2 // one retry
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.jobs[job.Jid] = e
}

func (l *books) noteBatch(b batchEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.batches = append(l.batches, b)
}

func (l *books) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.jobs)
}

// having are the jids of a fate, sorted.
func (l *books) having(fate string) []string {
	var jids []string
	for jid, e := range l.jobs {
		if e.fate == fate {
			jids = append(jids, jid)
		}
	}
	slices.Sort(jids)
	return jids
}

// fails is how many failures the jobs were told to have, in all.
func (l *books) fails() (n int) {
	for _, e := range l.jobs {
		n += e.fails
	}
	return n
}

// executions are what workers say of one job, in milliseconds of Unix time.
type executions struct{ started, done []int64 }

// readFleet gathers what the workers have printed.
func readFleet(t *testing.T, workers []*harness.Child) map[string]*executions {
	t.Helper()
	runs := make(map[string]*executions)
	for _, w := range workers {
		lines, _ := w.Lines.Snapshot()
		for _, line := range lines {
			var e struct {
				Event, ID string
				At        int64
			}
			if json.Unmarshal([]byte(line), &e) != nil || e.Event != "job" && e.Event != "done" {
				continue
			}
			if runs[e.ID] == nil {
				runs[e.ID] = &executions{}
			}
			if e.Event == "job" {
				runs[e.ID].started = append(runs[e.ID].started, e.At)
			} else {
				runs[e.ID].done = append(runs[e.ID].done, e.At)
			}
		}
	}
	for r := range maps.Values(runs) {
		slices.Sort(r.started)
		slices.Sort(r.done)
	}
	return runs
}

// audit compares the promises with what the workers did. Done twice is lawful for a job that was in a worker's hands when
// the broker was killed, or whose push was; the first are counted.
func (l *books) audit(t *testing.T, runs map[string]*executions, killedAt, backAt int64) (repeated int) {
	t.Helper()
	for jid, e := range l.jobs {
		r := runs[jid]
		if r == nil {
			r = &executions{}
		}
		what := fmt.Sprintf("%s job %s (%d starts, %d ends)", e.kind, jid, len(r.started), len(r.done))
		switch e.fate {
		case mustEnd:
			if len(r.done) == 0 {
				t.Errorf("%s was promised and never done", what)
			}
		case mustDie:
			if len(r.done) > 0 || len(r.started) < 2 {
				t.Errorf("%s had to fail twice", what)
			}
		case mustStay:
			if len(r.started) > 0 {
				t.Errorf("%s was refused and yet handed out", what)
			}
		}
		if len(r.done) > 1 && !e.twice {
			repeated++
			if inFlight := r.started[0] <= backAt && r.done[0] >= killedAt-500; !inFlight {
				t.Errorf("%s was done again without the kill's doing: %v, killed at %d", what, r.done, killedAt)
			}
		}
	}
	for jid := range runs {
		if _, known := l.jobs[jid]; !known {
			t.Errorf("job %s was run and never promised", jid)
		}
	}
	return repeated
}

// auditBatches looks at what batches say of themselves, and at the order of their callbacks.
func (l *books) auditBatches(t *testing.T, c *faktory.Client, runs map[string]*executions) {
	t.Helper()
	for _, b := range l.batches {
		st, err := c.BatchStatus(b.bid)
		check(t, err)
		got := fmt.Sprintf("total %d, pending %d, complete %s, success %s", st.Total, st.Pending, st.CompleteState, st.SuccessState)
		equal(t, "batch "+b.bid, got, fmt.Sprintf("total %d, pending 0, complete 2, success 2", len(b.members)))
		complete, success := runs[b.complete], runs[b.success]
		if complete == nil || success == nil || len(success.started) == 0 || len(complete.done) == 0 {
			continue // already reported as never done
		}
		for _, jid := range b.members {
			if m := runs[jid]; m != nil && (m.started[0] > complete.started[0] || m.done[0] > success.started[0]) {
				t.Errorf("batch %s: a callback came before job %s", b.bid, jid)
			}
		}
		if complete.done[0] > success.started[0] {
			t.Errorf("batch %s: success came before complete had ended", b.bid)
		}
	}
}
