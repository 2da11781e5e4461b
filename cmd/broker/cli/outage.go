package cli

import (
	"strings"
	"sync"
)

// outage prints the loss of the broker once, not at each attempt, and once when the broker answers again.
type outage struct {
	mu   sync.Mutex // guards lost
	lost bool
	say  func(format string, args ...any)
}

// failed notes a request that failed and is repeated.
func (o *outage) failed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lost {
		return
	}
	o.lost = true
	text, _, _ := strings.Cut(err.Error(), "\n") // without the hint how to name another broker
	o.say("%s; trying again", text)
}

// answered notes a request that the broker has answered.
func (o *outage) answered() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lost {
		o.lost = false
		o.say("the broker answers again")
	}
}
