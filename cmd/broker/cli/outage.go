package cli

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// sayEvery is the time between two lines about the same outage.
const sayEvery = time.Minute

// outage prints the loss of the broker once a minute, not at each attempt, and once when the broker answers again.
type outage struct {
	patience time.Duration // after which failed gives up; zero: never
	say      func(format string, args ...any)

	mu          sync.Mutex // guards the fields below
	since, last time.Time  // of the outage, and of the last line; zero: none
	text        string     // of the last line
}

// failed notes a request that failed and is to be repeated. It returns an error if that has gone on for too long.
func (o *outage) failed(err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if o.since.IsZero() {
		o.since = now
	}
	if lasted := now.Sub(o.since); o.patience > 0 && lasted >= o.patience {
		return &ExitError{Code: Code(err), Err: fmt.Errorf("%w\ngiven up after %s", err, span(lasted))}
	}
	text, _, _ := strings.Cut(err.Error(), "\n") // without the hint how to name another broker
	if text != o.text || now.Sub(o.last) >= sayEvery {
		o.text, o.last = text, now
		o.say("%s; trying again", text)
	}
	return nil
}

// answered notes a request that the broker has answered.
func (o *outage) answered() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.since.IsZero() {
		o.since, o.last, o.text = time.Time{}, time.Time{}, ""
		o.say("the broker answers again")
	}
}
