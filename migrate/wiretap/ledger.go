package wiretap

import (
	"cmp"
	"slices"
	"time"
)

// ledgerSize limits the jobs that a ledger follows, and those with unequal deliveries. Above it they are forgotten.
const ledgerSize = 250_000

// ledger knows what the servers did with each job. A job has its id at the first server.
type ledger struct {
	freshFor time.Duration // see times.fresh

	jobs   map[string]*ledgerJob
	recent []ledgerEvent           // events of the last freshFor
	fresh  int                     // jobs that wait for a worker since less than freshFor
	stands uint64                  // events that are older than freshFor and are the last one of their job
	holds  map[int]map[string]bool // connection → jobs that it holds
	askers map[int]*asker          // connections that wait for a job

	accepted, both uint64         // jobs that both accepted; deliveries that both made
	odd            map[string]odd // jobs that one server has delivered more often
}

type ledgerJob struct {
	last  time.Time // last event
	line  int       // connection that holds it; zero: none
	fresh bool      // counts in ledger.fresh
}

type ledgerEvent struct {
	id string
	at time.Time
}

// odd is the surplus of deliveries of the first server; negative for the second.
type odd struct {
	surplus int
	since   time.Time
}

// asker is a connection that asked for a job.
type asker struct {
	req   request
	since time.Time
	none  bool   // the first server had no job, and the client has not said that it waits
	seen  uint64 // ledger.stands when the second server was asked last
}

func newLedger(fresh time.Duration) *ledger {
	return &ledger{
		freshFor: fresh,
		jobs:     make(map[string]*ledgerJob), holds: make(map[int]map[string]bool), askers: make(map[int]*asker),
		odd: make(map[string]odd),
	}
}

// accept records a job that both servers have accepted.
func (l *ledger) accept(id string) {
	if l.jobs[id] == nil {
		l.accepted++
		l.event(id, 0)
	}
}

// event records that a job was accepted or returned (line is zero), or delivered to a connection.
func (l *ledger) event(id string, line int) {
	l.end(id)
	if len(l.jobs) >= ledgerSize {
		clear(l.jobs)
		clear(l.holds)
		l.recent, l.fresh = nil, 0
	}
	j := &ledgerJob{last: time.Now(), line: line, fresh: line == 0}
	l.jobs[id] = j
	if j.fresh {
		l.fresh++
	} else {
		if l.holds[line] == nil {
			l.holds[line] = make(map[string]bool)
		}
		l.holds[line][id] = true
	}
	l.recent = append(l.recent, ledgerEvent{id, j.last})
}

// end forgets a job that has ended.
func (l *ledger) end(id string) {
	j := l.jobs[id]
	if j == nil {
		return
	}
	if j.fresh {
		l.fresh--
	}
	if held := l.holds[j.line]; held != nil {
		if delete(held, id); len(held) == 0 {
			delete(l.holds, j.line)
		}
	}
	delete(l.jobs, id)
}

// asked applies a request that names a job.
func (l *ledger) asked(r *request, id string) {
	switch {
	case r.ends:
		l.end(id)
	case r.frees && l.jobs[id] != nil:
		l.event(id, 0)
	}
}

// delivered counts a delivery. late means that the other server had made it.
func (l *ledger) delivered(id string, first bool) (late bool) {
	o, step := l.odd[id], -1
	if first {
		step = 1
	}
	if late = o.surplus*step < 0; late {
		l.both++
	} else {
		o.since = time.Now()
	}
	if o.surplus += step; o.surplus == 0 {
		delete(l.odd, id)
	} else if _, has := l.odd[id]; has || len(l.odd) < ledgerSize {
		l.odd[id] = o
	}
	return late
}

// leave returns the jobs of a closed connection.
func (l *ledger) leave(line int) {
	for id := range l.holds[line] {
		l.event(id, 0)
	}
	delete(l.askers, line)
}

// calm reports whether no job may be on its way to a client of the first server.
func (l *ledger) calm() bool {
	before := time.Now().Add(-l.freshFor)
	for len(l.recent) > 0 && l.recent[0].at.Before(before) {
		e := l.recent[0]
		l.recent = l.recent[1:]
		if j := l.jobs[e.id]; j != nil && j.last.Equal(e.at) {
			l.stands++
			if j.fresh {
				l.fresh, j.fresh = l.fresh-1, false
			}
		}
	}
	return l.fresh == 0
}

// asks records that a connection asks for a job. It may ask again and again.
func (l *ledger) asks(line int, r *request) {
	a := l.askers[line]
	if a == nil || a.none {
		a = &asker{since: time.Now()}
		l.askers[line] = a
	}
	a.req, a.none = *r, false
}

// overdue returns the requests of connections that have waited for long, if the second server may have a job for them
// that has waited as long.
func (l *ledger) overdue() map[int]request {
	if !l.calm() {
		return nil
	}
	var due map[int]request
	for line, a := range l.askers {
		if a.none || a.seen == l.stands || a.req.poll == nil || time.Since(a.since) < l.freshFor {
			continue
		}
		a.seen = l.stands
		if due == nil {
			due = make(map[int]request)
		}
		due[line] = a.req
	}
	return due
}

// Jobs counts the jobs of a comparison, and names those that only one of the servers has delivered, or delivered more
// often: the first ones, by their id at the server that clients use.
type Jobs struct {
	Accepted   uint64   `json:"accepted"`    // jobs that both accepted
	Delivered  uint64   `json:"delivered"`   // deliveries that both made, a job that returns counts again
	OnlyServer uint64   `json:"only_server"` // jobs that only the server has delivered
	OnlyBroker uint64   `json:"only_broker"` // jobs that only the broker has delivered
	FromServer []string `json:"from_server"` // names of OnlyServer
	FromBroker []string `json:"from_broker"` // names of OnlyBroker
}

// account adds what a ledger knows. Deliveries since the given time may still be met by the other server.
func (j *Jobs) account(l *ledger, reversed bool, since time.Time) {
	j.Accepted, j.Delivered = j.Accepted+l.accepted, j.Delivered+l.both
	var ids []string
	for id, o := range l.odd {
		if o.since.Before(since) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(l.odd[a].since.Compare(l.odd[b].since), cmp.Compare(a, b))
	})
	for _, id := range ids {
		n, names := &j.OnlyBroker, &j.FromBroker
		if (l.odd[id].surplus > 0) != reversed {
			n, names = &j.OnlyServer, &j.FromServer
		}
		if *n++; len(*names) < maxFound {
			*names = append(*names, id)
		}
	}
}
