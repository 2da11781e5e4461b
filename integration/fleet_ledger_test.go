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

// What must happen to a pushed job.
const (
	mustEnd  = "done"    // acknowledged: it must be done at least once
	mustDie  = "dead"    // acknowledged, and fails until it is dead
	mustStay = "refused" // not unique: no worker may ever see it
)

// entry is a job in the ledger.
type entry struct {
	kind  string
	fate  string
	fails int  // how often the worker must fail it
	twice bool // the reply to a push was lost, and the job was pushed again
}

// batchEntry is a batch in the ledger.
type batchEntry struct {
	bid, complete, success string
	members                []string
}

// ledger records what was acknowledged to the producers, independently of what the broker reports.
type ledger struct {
	mu      sync.Mutex // guards the rest
	jobs    map[string]entry
	batches []batchEntry
}

func (l *ledger) note(job *faktory.Job, kind, fate string, lost bool) {
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

func (l *ledger) noteBatch(b batchEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.batches = append(l.batches, b)
}

func (l *ledger) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.jobs)
}

// jidsOf are the sorted jids of the jobs with a fate.
func (l *ledger) jidsOf(fate string) []string {
	var jids []string
	for jid, e := range l.jobs {
		if e.fate == fate {
			jids = append(jids, jid)
		}
	}
	slices.Sort(jids)
	return jids
}

// fails is the total number of failures that the workers must report.
func (l *ledger) fails() (n int) {
	for _, e := range l.jobs {
		n += e.fails
	}
	return n
}

// executions are the events of one job in the output of the workers, in Unix milliseconds.
type executions struct{ started, done []int64 }

// readFleet parses the output of the workers.
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

// audit compares the ledger with what the workers did. A job may be done twice if it was reserved when the broker was
// killed, or if its push was repeated; the former are counted.
func (l *ledger) audit(t *testing.T, runs map[string]*executions, killedAt, backAt int64) (repeated int) {
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
				t.Errorf("%s was acknowledged but never done", what)
			}
		case mustDie:
			if len(r.done) > 0 || len(r.started) < 2 {
				t.Errorf("%s did not fail twice", what)
			}
		case mustStay:
			if len(r.started) > 0 {
				t.Errorf("%s was refused but handed out", what)
			}
		}
		if len(r.done) > 1 && !e.twice {
			repeated++
			if inFlight := r.started[0] <= backAt && r.done[0] >= killedAt-500; !inFlight {
				t.Errorf("%s was done twice although the kill does not explain it: %v, killed at %d", what, r.done,
					killedAt)
			}
		}
	}
	for jid := range runs {
		if _, known := l.jobs[jid]; !known {
			t.Errorf("job %s was run but never acknowledged", jid)
		}
	}
	return repeated
}

// auditBatches checks the status of the batches and the order of their callbacks.
func (l *ledger) auditBatches(t *testing.T, c *faktory.Client, runs map[string]*executions) {
	t.Helper()
	for _, b := range l.batches {
		st, err := c.BatchStatus(b.bid)
		check(t, err)
		got := fmt.Sprintf("total %d, pending %d, complete %s, success %s", st.Total, st.Pending, st.CompleteState,
			st.SuccessState)
		equal(t, "batch "+b.bid, got, fmt.Sprintf("total %d, pending 0, complete 2, success 2", len(b.members)))
		complete, success := runs[b.complete], runs[b.success]
		if complete == nil || success == nil || len(success.started) == 0 || len(complete.done) == 0 {
			continue // already reported as never done
		}
		for _, jid := range b.members {
			if m := runs[jid]; m != nil && (m.started[0] > complete.started[0] || m.done[0] > success.started[0]) {
				t.Errorf("batch %s: a callback ran before job %s", b.bid, jid)
			}
		}
		if complete.done[0] > success.started[0] {
			t.Errorf("batch %s: the success callback ran before the complete callback had ended", b.bid)
		}
	}
}
