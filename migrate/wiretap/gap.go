package wiretap

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Gap is a moment at which the comparison started anew: the second server was emptied, and jobs from before are not
// compared.
type Gap struct {
	At       time.Time `json:"at"`
	Why      string    `json:"why"`
	Requests uint64    `json:"requests"` // that were skipped
	Bytes    uint64    `json:"bytes"`    // of these requests and their replies
}

// String is one line.
func (g *Gap) String() string {
	s := "the comparison starts anew: " + g.Why
	if g.Requests > 0 {
		s += fmt.Sprintf("; skipped %d requests, %.1f MiB", g.Requests, float64(g.Bytes)/(1<<20))
	}
	return s
}

// Anew starts the comparison anew with an empty second server. If that is not possible, the comparison ends.
func (c *Comparer) Anew(why string) {
	if c.opts.Renew == nil {
		c.Drop(why)
		return
	}
	c.enqueue(task{gap: &Gap{Why: why}})
}

// startSkip drops the requests that are not compared yet, and those of the next time.
func (c *Comparer) startSkip() {
	why := fmt.Sprintf("the second server was behind by more than %d MiB of requests", c.opts.MaxBytes>>20)
	if c.opts.Renew == nil {
		c.Drop(why)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.skip != nil || c.ended.Load() {
		return
	}
	c.skip = &Gap{At: time.Now(), Why: why}
	for _, t := range c.queue {
		c.skipTask(t)
	}
	c.queue = nil
	c.wakePlayer()
}

// skipTask drops a task.
func (c *Comparer) skipTask(t task) {
	if t.x == nil {
		return
	}
	c.skip.Requests++
	c.skip.Bytes += uint64(max(t.x.bytes-taskBytes, 0))
	c.verdicts.skipped(t.x)
}

// resume ends the time of skipping.
func (c *Comparer) resume() {
	c.mu.Lock()
	over := c.skip != nil && time.Since(c.skip.At) > c.opts.times.skip
	c.mu.Unlock()
	if over {
		c.endSkip()
	}
}

// endSkip lets the player start anew.
func (c *Comparer) endSkip() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.skip == nil || c.ended.Load() {
		return
	}
	c.queue, c.skip = append(c.queue, task{gap: c.skip}), nil
	c.wakePlayer()
}

// anew empties the second server and forgets all jobs.
func (c *Comparer) anew(conns connections, g Gap) error {
	conns.close()
	c.polls = newPolls(c)
	for _, number := range c.early.all() {
		for _, t := range c.early.release(number) {
			if t.x != nil {
				g.Requests++
				c.verdicts.skipped(t.x)
			}
		}
	}
	if err := c.opts.Renew(); err != nil {
		return fmt.Errorf("the second server cannot be started anew: %w", err)
	}
	c.mu.Lock()
	c.gaps++
	c.mu.Unlock()
	g.At = time.Now()
	c.verdicts.anew(g)
	return nil
}

// maxStates limits the requests that a new connection repeats.
const maxStates = 1000

// stateRequests are the requests that set the state of a connection, each name once, in their order.
type stateRequests []request

// add adds a request. A name that ends with a space replaces all names that begin with it.
func (s *stateRequests) add(r request) {
	*s = slices.DeleteFunc(*s, func(old request) bool {
		return old.state == r.state || strings.HasSuffix(r.state, " ") && strings.HasPrefix(old.state, r.state)
	})
	if len(*s) < maxStates {
		*s = append(*s, r)
	}
}

// stateOf returns the requests that a new connection to the second server has to repeat for a client's connection. The
// first connection of a client repeats nothing, because its requests are played.
func (c *Comparer) stateOf(number int, always bool) (states []request) {
	c.mu.Lock()
	l := c.lines[number]
	old := l != nil && l.gaps < c.gaps
	if c.gaps > 0 {
		states = slices.Clone(c.shared)
	}
	c.mu.Unlock()
	if l != nil && (old || always) {
		l.mu.Lock()
		defer l.mu.Unlock()
		states = append(states, l.states...)
	}
	return states
}

// stateVersion changes with the state of a client's connection.
func (c *Comparer) stateVersion(number int) int {
	c.mu.Lock()
	l := c.lines[number]
	c.mu.Unlock()
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.version
}
