package hostile

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
)

// maxEvents is the number of events that a Log keeps. It keeps the newest.
const maxEvents = 100_000

// Event is a fault that has happened.
type Event struct {
	Number     int    `json:"number"` // from 1
	Fault      string `json:"fault"`
	Queue      string `json:"queue"`
	Submission uint64 `json:"submission"`    // number of the job's submission to its queue, from 1
	Protocol   string `json:"protocol"`      // of the client that submitted it
	Job        string `json:"job,omitempty"` // its id
	Seq        uint64 `json:"seq,omitempty"` // its Seq: the id in Beanstalk, the end of a handle in Gearman
	Detail     string `json:"detail"`
}

func (e Event) String() string {
	job := ""
	if e.Job != "" {
		job = ", job " + e.Job
	}
	return fmt.Sprintf("fault %d: %s, submission %d to %s%s: %s", e.Number, e.Fault, e.Submission, e.Queue, job,
		e.Detail)
}

// Log holds the faults so far, with the seed and the rates.
type Log struct {
	seed    uint64
	rates   Rates
	onFault func(Event)

	mu     sync.Mutex // guards the fields below
	count  int
	events []Event
}

// NewLog makes a Log. onFault, if not nil, is called for each fault, in order and never at the same time.
func NewLog(seed uint64, r Rates, onFault func(Event)) *Log {
	return &Log{seed: seed, rates: r, onFault: onFault}
}

// add records a fault of a job.
func (l *Log) add(k Kind, p *plan, detail string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	e := Event{
		Number: l.count, Fault: k.String(), Queue: p.queue, Submission: p.submission, Protocol: p.protocol.String(),
		Job: p.id, Seq: p.seq, Detail: detail,
	}
	if len(l.events) == maxEvents {
		l.events = append(l.events[:0], l.events[maxEvents/10:]...)
	}
	l.events = append(l.events, e)
	if l.onFault != nil {
		l.onFault(e)
	}
}

// Events returns the faults so far, in order.
func (l *Log) Events() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Event{}, l.events...)
}

// Pattern is the route of ServeHTTP.
const Pattern = "GET /api/v1/faults"

// ServeHTTP shows the seed, the rates and the faults so far.
func (l *Log) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	_ = out.Encode(struct { // fails only if the client has disconnected
		Seed   uint64  `json:"seed"`
		Rates  string  `json:"rates"`
		Faults []Event `json:"faults"`
	}{l.seed, l.rates.String(), l.Events()})
}
