package console

import (
	"cmp"
	"slices"
	"time"

	"broker/operate/service"
)

// attempt is one run of a job, as its timeline shows it.
type attempt struct {
	Number  int // from 1; zero: unknown, because earlier entries of the timeline were dropped
	At      *time.Time
	Length  string
	Worker  string
	Version string // of the worker's program
	State   string // the state whose colour it has
	Outcome string // in words
	Error   string // class
	Message string
	Trace   []string // the worker's backtrace, kept for the last failure only
}

// attemptEnds maps the timeline entries that end an attempt to the state whose colour they have, and to a word.
var attemptEnds = map[string][2]string{
	"done": {"done", "done"}, "failed": {"failed", "failed"}, "released": {"ready", "given back"},
	"lease_expired": {"retrying", "lease expired"},
	"cancelled":     {"cancelled", "cancelled"}, "dead": {"dead", "killed"}, "expired": {"cancelled", "expired"},
}

// attemptsOf returns the attempts of a job, newest first.
func attemptsOf(j *service.Job) (all []attempt) {
	open, known, last := false, true, uint32(0)
	for i, e := range j.Timeline {
		if i > 0 && e.Number > last+1 {
			open, known = false, false // the entries between them were dropped
		}
		last = e.Number
		end, ends := attemptEnds[e.Kind]
		switch {
		case e.Kind == "leased":
			a := attempt{At: e.At, Worker: workerOf(&e), Version: e.Version, State: "leased", Outcome: "running"}
			if known {
				a.Number = len(all) + 1
			}
			all, open = append(all, a), true
		case ends && open:
			a := &all[len(all)-1]
			a.Length, a.State, a.Outcome = between(a.At, e.At), end[0], end[1]
			if e.Kind == "failed" {
				a.Error, a.Message = e.Detail, e.Text
			}
			open = false
		}
	}
	if open && j.State != "leased" { // its end is not in the timeline
		a := &all[len(all)-1]
		a.State, a.Outcome = j.State, "ended"
	}
	if !known { // number the last attempts back from the total
		for i, n := len(all)-1, int(j.Attempts); i >= 0 && n > 0 && all[i].Number == 0; i, n = i-1, n-1 {
			all[i].Number = n
		}
	}
	addTrace(all, j)
	slices.Reverse(all)
	return all
}

// addTrace adds the backtrace of the last failure to its attempt.
func addTrace(all []attempt, j *service.Job) {
	for i := len(all) - 1; i >= 0 && j.Failure != nil; i-- {
		if all[i].Outcome == "failed" {
			all[i].Trace = j.Failure.Backtrace
			return
		}
	}
}

// workerOf returns the worker of a timeline entry.
func workerOf(e *service.TimelineEntry) string {
	name := e.Worker
	if name == anonymous {
		name = ""
	}
	return cmp.Or(name, e.Address, e.Protocol)
}
