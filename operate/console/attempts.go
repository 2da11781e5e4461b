package console

import (
	"cmp"
	"time"

	"broker/operate/service"
)

// attempt is one run of a job, as far as its timeline has it.
type attempt struct {
	Number    int // from 1; zero: not known, since entries of the timeline are not kept
	At, Until *time.Time
	Length    string
	Worker    string
	State     string // how it ended, by the state whose colour it has
	Outcome   string // in words
	Error     string // class
	Message   string
	Trace     []string // the worker's backtrace, which is kept of the last failure only
}

// attemptEnds are the entries of a timeline that end an attempt: the state whose colour they have, and what they are called.
var attemptEnds = map[string][2]string{
	"done": {"done", "done"}, "failed": {"failed", "failed"}, "released": {"ready", "given back"}, "lease_expired": {"retrying", "lease expired"},
	"cancelled": {"cancelled", "cancelled"}, "dead": {"dead", "killed"}, "expired": {"cancelled", "expired"},
}

// attemptsOf are the attempts of a job, the newest first.
func attemptsOf(j *service.Job) (all []attempt) {
	open, known, last := false, true, uint32(0)
	for i, e := range j.Timeline {
		if i > 0 && e.Number > last+1 {
			open, known = false, false // what is between them is not kept
		}
		last = e.Number
		end, ends := attemptEnds[e.Kind]
		switch {
		case e.Kind == "leased":
			a := attempt{At: e.At, Worker: workerOf(&e), State: "leased", Outcome: "running"}
			if known {
				a.Number = len(all) + 1
			}
			all, open = append(all, a), true
		case ends && open:
			a := &all[len(all)-1]
			a.Until, a.Length, a.State, a.Outcome = e.At, between(a.At, e.At), end[0], end[1]
			if e.Kind == "failed" {
				a.Error, a.Message = e.Detail, e.Text
			}
			open = false
		}
	}
	if open && j.State != "leased" { // what has ended it is not in the timeline
		a := &all[len(all)-1]
		a.State, a.Outcome = j.State, "ended"
	}
	if !known { // the last ones are counted from the end
		for i, n := len(all)-1, int(j.Attempts); i >= 0 && n > 0 && all[i].Number == 0; i, n = i-1, n-1 {
			all[i].Number = n
		}
	}
	addTrace(all, j)
	for i, k := 0, len(all)-1; i < k; i, k = i+1, k-1 {
		all[i], all[k] = all[k], all[i]
	}
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

// workerOf names the worker of an entry of a timeline.
func workerOf(e *service.TimelineEntry) string {
	name := e.Worker
	if name == anonymous {
		name = ""
	}
	return cmp.Or(name, e.Address, e.Protocol)
}
