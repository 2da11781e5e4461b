package integration_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"broker/integration/harness"
)

// Times of the jobs in the table: short where a job must time out, and long where it must not, since the machine may be
// busy. Faktory's minimum bounds the duration of the test anyway.
const (
	tableLong         = 5 * time.Minute
	tableShortLease   = time.Second      // of a Workq job whose lease runs out
	tableDefaultLease = 45 * time.Second // of a Gearman job that a Workq or Faktory worker has leased
	tableFaktoryLease = time.Minute      // Faktory's minimum
	tableMortal       = 45 * time.Second // time to live of jobs that expire
	tableUnclaimed    = time.Minute      // time to live of Faktory jobs that no worker asks for
	tableMargin       = 1500 * time.Millisecond
)

// tableHandles is the prefix of job handles.
const tableHandles = "H:table"

// tableCell is the life of one job: its origin, its worker and its end.
type tableCell struct {
	t       *testing.T
	b       *harness.Broker
	clients clients // for the queries of the test itself
	origin  tableOrigin
	worker  tableWorkerKind
	end     string
	queue   string

	id   string // chosen by clients that name their jobs
	name string // the id or the handle of the job
	row  tableRow
}

// tableRow is a job in the HTTP API.
type tableRow struct {
	ID, Alias, State string
	Seq              uint64
	Attempts, Fails  int
	Outcome          *struct{ Success bool }
}

// workqName is the id of the job in Workq.
func (r tableRow) workqName() string {
	if r.Alias != "" {
		return r.Alias
	}
	return r.ID
}

// cellsOf parses the table in docs/sharing.md. The key is origin, end and worker.
func cellsOf(t *testing.T, page string) map[[3]string]string {
	t.Helper()
	cells := make(map[[3]string]string)
	_, rest, _ := strings.Cut(page, "<!-- cells")
	rest, _, _ = strings.Cut(rest, "<!-- end of cells -->")
	origin, workers := "", []string(nil)
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		if name, found := strings.CutPrefix(line, "### "); found {
			origin = name
			continue
		}
		columns := strings.Split(strings.Trim(line, "|"), " | ")
		for i := range columns {
			columns[i] = strings.TrimSpace(columns[i])
		}
		switch {
		case !strings.HasPrefix(line, "| "):
		case columns[0] == "end":
			workers = columns[1:]
		default:
			for i, text := range columns[1:] {
				cells[[3]string{origin, columns[0], workers[i]}] = text
			}
		}
	}
	return cells
}

// wordsOf parses the table of states: the words of Gearman, Workq and Faktory for each state.
func wordsOf(t *testing.T, page string) map[string][3]string {
	t.Helper()
	words := make(map[string][3]string)
	_, rest, _ := strings.Cut(page, "<!-- words -->")
	rest, _, _ = strings.Cut(rest, "<!-- end of words -->")
	for line := range strings.Lines(rest) {
		columns := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(columns) == 4 {
			words[strings.TrimSpace(columns[0])] = [3]string{columns[1], columns[2], strings.TrimSpace(columns[3])}
		}
	}
	return words
}

// TestEveryCellOfTheSharingTable verifies every cell of the table in docs/sharing.md, all at the same time. The cells
// of Faktory jobs whose lease expires take a minute: Faktory has no shorter lease.
func TestEveryCellOfTheSharingTable(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	text, err := os.ReadFile("../docs/sharing.md")
	check(t, err)
	cells, words := cellsOf(t, string(text)), wordsOf(t, string(text))
	b := harness.Start(t, harness.Options{Config: fmt.Sprintf("default_lease = %q\n[gearman]\nhandle_prefix = %q\n",
		tableDefaultLease, tableHandles)})
	n := 0
	var all sync.WaitGroup
	for _, o := range tableOrigins() {
		for _, end := range tableEnds() {
			for _, k := range tableWorkerKinds() {
				want, found := cells[[3]string{o.name, end, k.name}]
				if !found {
					t.Errorf("docs/sharing.md has no cell %s, %s, %s", o.name, k.name, end)
				}
				n++
				c := &tableCell{b: b, origin: o, worker: k, end: end, queue: fmt.Sprintf("cell-%d", n), id: newID()}
				all.Go(func() { // ends with its cell
					t.Run(strings.Join([]string{o.name, k.name, end}, ","), func(t *testing.T) {
						c.t, c.clients = t, open(t, b)
						c.run(want, words)
					})
				})
			}
		}
	}
	all.Wait()
	equal(t, "cells on the page and played", len(cells), n)
}

func tableEnds() []string {
	return []string{"complete", "fail", "worker lost", "lease expired", "cancelled", "expired"}
}

// part is the text behind a label of a cell.
func part(cell, label string) string {
	_, rest, found := strings.Cut("; "+cell, "; "+label+": ")
	if !found {
		return ""
	}
	text, _, _ := strings.Cut(rest, "; ")
	return text
}

// run runs the job and compares the outcome with the table.
func (c *tableCell) run(want string, words map[string][3]string) {
	c.t.Helper()
	told := c.origin.submit(c)
	harness.Eventually(c.t, func() string {
		var found bool
		if c.row, found = c.read(); !found {
			return "no job " + c.name
		}
		return ""
	})
	patient := part(want, "client") == "waits on"
	if strings.HasPrefix(want, "no worker gets it") {
		time.Sleep(tableUnclaimed + tableMargin + time.Second) // a scheduled job is due after up to a second
		if c.worker.take(c, false) != nil {
			c.t.Fatal("a worker received the job")
		}
		equal(c.t, "cell",
			fmt.Sprintf("no worker gets it; client: %s; job: %s", told(patient), c.awaitState("gone", words)), want)
		return
	}
	w := c.worker.take(c, true)
	answered, late := c.finish(w)
	state := c.awaitState(part(want, "job"), words)
	got := fmt.Sprintf("client: %s; job: %s", told(patient), state)
	if answered != "" && answered != "nothing" && answered != "`+OK`" && answered != "`204`" {
		got += "; worker: " + answered
	}
	if late {
		lateWant := part(want, "late finish")
		got += "; late finish: " + w.finish(true)
		then := state
		if _, counts, found := strings.Cut(lateWant, "and it counts: "); found {
			then = counts
		}
		if after := c.awaitState(then, words); after != state {
			got += ", and it counts: " + after
		}
	}
	equal(c.t, "cell", got, want)
}

// finish ends the job. Late: the worker continues as if nothing had happened.
func (c *tableCell) finish(w *tableWorker) (answered string, late bool) {
	c.t.Helper()
	switch c.end {
	case "complete":
		return w.finish(true), false
	case "fail":
		return w.finish(false), false
	case "worker lost":
		check(c.t, w.hangup())
		return "", false
	case "cancelled":
		check(c.t, c.clients.workq.Delete(c.row.workqName()))
		return "", true
	}
	time.Sleep(c.silentFor() + tableMargin)
	return "", true
}

// silentFor is how long the worker must stay silent until the lease expires.
func (c *tableCell) silentFor() time.Duration {
	switch {
	case strings.HasPrefix(c.origin.name, "Gearman"):
		return tableDefaultLease
	case c.end == "expired":
		return tableMortal
	case c.origin.isFaktory():
		return tableFaktoryLease
	}
	return tableShortLease
}

// read reads the job over HTTP.
func (c *tableCell) read() (row tableRow, found bool) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, "http://"+c.b.HTTP+"/api/v1/jobs/"+c.name,
		nil)
	check(c.t, err)
	resp, err := http.DefaultClient.Do(req)
	check(c.t, err)
	defer func() { _ = resp.Body.Close() }() // read to its end
	check(c.t, json.NewDecoder(resp.Body).Decode(&row))
	return row, resp.StatusCode == http.StatusOK
}

// awaitState waits until the job has the expected state and returns its state. The words of every protocol must be
// those of the table.
func (c *tableCell) awaitState(want string, words map[string][3]string) string {
	c.t.Helper()
	var row tableRow
	state := ""
	for deadline := time.Now().Add(harness.Patience); state != want && time.Now().Before(deadline); {
		var found bool
		if row, found = c.read(); found {
			state = row.State
		} else {
			state = "gone"
		}
		if state != want {
			time.Sleep(10 * time.Millisecond)
		}
	}
	place := state
	switch {
	case state == "ready" && row.Attempts > 0:
		place = "ready again"
	case state == "done" && row.Outcome != nil && !row.Outcome.Success:
		place = "done, failed"
	}
	expected := words[place]
	if c.origin.name == "Faktory batch" { // its job is not tracked
		expected[2] = "unknown"
	}
	equal(c.t, "the words for "+place, c.stateWords(), expected)
	return state
}

// stateWords is the state of the job in the words of Gearman, Workq and Faktory.
func (c *tableCell) stateWords() (words [3]string) {
	c.t.Helper()
	status := jobStatus(c.t, c.clients.gearman, fmt.Sprint(tableHandles, ":", c.row.Seq))
	words[0] = map[string]string{"0 0": "unknown", "1 0": "known, waits", "1 1": "known, runs"}[status[:3]]
	o, err := c.clients.workq.InspectJob(c.row.workqName())
	if words[1] = "state " + o.Value("state"); err != nil {
		words[1] = err.Error()
	}
	text, err := c.clients.faktory.Generic("TRACK GET " + c.row.ID)
	check(c.t, err)
	var track struct{ State string }
	check(c.t, json.Unmarshal([]byte(text), &track))
	words[2] = track.State
	return words
}
