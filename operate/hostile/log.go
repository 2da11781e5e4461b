package hostile

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
)

// maxEvents is the number of events that a Log keeps. It keeps the newest.
const maxEvents = 100_000

// Subject is the job of a fault or of a finding.
type Subject struct {
	Queue      string `json:"queue"`
	Submission uint64 `json:"submission"`    // number of the job's submission to its queue, from 1; 0: unknown
	Protocol   string `json:"protocol"`      // of the client that submitted it
	Job        string `json:"job,omitempty"` // its id
	Seq        uint64 `json:"seq,omitempty"` // its Seq: the id in Beanstalk, the end of a handle in Gearman
}

func (s Subject) String() string {
	job := ""
	if s.Job != "" {
		job = ", job " + s.Job
	}
	return fmt.Sprintf("submission %d to %s%s", s.Submission, s.Queue, job)
}

// Event is a fault that has happened.
type Event struct {
	Number int    `json:"number"` // from 1
	Fault  string `json:"fault"`
	Subject
	Detail string `json:"detail"`
}

func (e Event) String() string {
	return fmt.Sprintf("fault %d: %s, %s: %s", e.Number, e.Fault, e.Subject, e.Detail)
}

// Log holds the faults so far, with the seed and the rates, and what workers did meanwhile.
type Log struct {
	seed    uint64
	rates   Rates
	onFault func(Event)
	judge   *judge

	mu     sync.Mutex // guards the fields below
	count  int
	events []Event
}

// NewLog makes a Log. onFault, if not nil, is called for each fault, in order and never at the same time.
func NewLog(seed uint64, r Rates, onFault func(Event)) *Log {
	return &Log{seed: seed, rates: r, onFault: onFault, judge: newJudge()}
}

// add records a fault of a job.
func (l *Log) add(k Kind, p *plan, detail string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	e := Event{Number: l.count, Fault: k.String(), Subject: p.subject(), Detail: detail}
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

// Verdict is what workers have done so far. What they still have counts as never acknowledged once the broker has
// stopped.
func (l *Log) Verdict() *Verdict { return l.judge.verdict() }

// Stopped says that the broker has stopped.
func (l *Log) Stopped() { l.judge.inspect.Store(nil) }

// Pattern is the route of ServeHTTP.
const Pattern = "GET /api/v1/faults"

// ServeHTTP shows the seed, the rates, the faults so far and the verdict.
func (l *Log) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	_ = out.Encode(struct { // fails only if the client has disconnected
		Seed    uint64   `json:"seed"`
		Rates   string   `json:"rates"`
		Verdict *Verdict `json:"verdict"`
		Faults  []Event  `json:"faults"`
	}{l.seed, l.rates.String(), l.Verdict(), l.Events()})
}
