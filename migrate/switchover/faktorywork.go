package switchover

import (
	"encoding/json"
	"strings"
	"sync"
	"time"

	"broker/migrate/wire"
)

// owners remembers which side has handed out a job. It keeps at least the last limit jobs.
type owners struct {
	limit int

	mu       sync.Mutex // guards the fields below
	new, old map[string]bool
}

func newOwners(limit int) *owners {
	return &owners{limit: limit, new: make(map[string]bool), old: make(map[string]bool)}
}

// set records whether a job came from the broker or the server.
func (o *owners) set(jid string, broker bool) {
	if len(jid) > maxName {
		return // its ACK or FAIL goes to both sides
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.new) >= o.limit {
		o.new, o.old = make(map[string]bool), o.new
	}
	o.new[jid] = broker
}

// of returns the side that a job came from, if it is known.
func (o *owners) of(jid string) (broker, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if broker, known = o.new[jid]; !known {
		broker, known = o.old[jid]
	}
	return broker, known
}

func (o *owners) forget(jid string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.new, jid)
	delete(o.old, jid)
}

// depthsFor is the time for which known queue depths are used.
const depthsFor = 200 * time.Millisecond

// depths are the numbers of waiting jobs in the queues of a side. All connections share them. FETCH waits two seconds
// at an empty side, so it goes to a side that has jobs.
type depths struct {
	mu      sync.Mutex // guards the fields below
	at      time.Time
	waiting map[string]int
	skipped map[string]time.Time // queues that returned no job although jobs wait, such as paused queues
}

// skipFor is the time for which the depth of such a queue is ignored.
const skipFor = 5 * time.Second

// skip records that a queue with waiting jobs returned none.
func (d *depths) skip(queue string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.skipped == nil || len(d.skipped) >= maxQueues {
		d.skipped = make(map[string]time.Time)
	}
	d.skipped[queue] = time.Now()
}

// due reports whether the caller must read the depths again.
func (d *depths) due(age time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.at) < age {
		return false
	}
	d.at = time.Now() // other connections use the old depths in the meantime
	return true
}

// read reads the depths from a reply to INFO.
func (d *depths) read(reply []byte) {
	var info struct {
		Faktory struct {
			Queues map[string]int `json:"queues"`
		} `json:"faktory"`
	}
	_ = json.Unmarshal(wire.RESPText(reply), &info) // after an error, no jobs are known to wait
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = info.Faktory.Queues
}

// first returns the first of the queues that has jobs.
func (d *depths) first(queues []string) (queue string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range queues {
		if d.waiting[q] > 0 && time.Since(d.skipped[q]) > skipFor {
			return q, true
		}
	}
	return "", false
}

// take counts a job that will be fetched.
func (d *depths) take(queue string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting[queue] > 0 {
		d.waiting[queue]--
	}
}

// fetch takes a job from one side. It waits as long as a single server.
func (c *faktoryConn) fetch(p []byte, queues []string) error {
	if len(queues) == 0 {
		queues = []string{"default"}
	}
	both, allNew := c.shared(queues)
	if len(both) == 0 {
		if !c.s.any() {
			return c.pass(c.server, p, nil)
		}
		return c.pass(c.server, p, c.owned(false))
	}
	b, err := c.atBroker()
	if err != nil { // the server's jobs still work
		return c.pass(c.server, p, c.owned(false))
	}
	var atServer, atBroker string
	var serverHas, brokerHas bool
	for _, age := range []time.Duration{depthsFor, 0} { // check again before waiting
		if err := c.readDepths(b, age); err != nil {
			return err
		}
		atServer, serverHas = c.f.depths[0].first(queues)
		atBroker, brokerHas = c.f.depths[1].first(both)
		if serverHas || brokerHas {
			break
		}
	}
	fromBroker := brokerHas
	if brokerHas == serverHas {
		fromBroker = c.turn
		c.turn = !c.turn
		if !brokerHas && allNew { // the next job will arrive there
			fromBroker = true
		}
	}
	if !fromBroker {
		c.f.depths[0].take(atServer)
		return c.pass(c.server, p, c.fetched(false, atServer))
	}
	c.f.depths[1].take(atBroker)
	return c.pass(b, []byte("FETCH "+strings.Join(both, " ")+"\r\n"), c.fetched(true, atBroker))
}

// fetched records the side of a fetched job, or that the queue returned none although jobs wait in it.
func (c *faktoryConn) fetched(broker bool, queue string) func([]byte) []byte {
	note := c.owned(broker)
	return func(reply []byte) []byte {
		if len(wire.RESPText(reply)) == 0 && queue != "" {
			side := 0
			if broker {
				side = 1
			}
			c.f.depths[side].skip(queue)
		}
		return note(reply)
	}
}

// shared lists the queues whose jobs may be on either side, and reports whether the new jobs of all queues go to the
// broker.
func (c *faktoryConn) shared(queues []string) (both []string, allNew bool) {
	allNew = true
	for _, q := range queues {
		e := c.s.find(q)
		if e != nil {
			both = append(both, q)
		}
		allNew = allNew && e != nil && e.state == New
	}
	return both, allNew
}

// readDepths reads the depths of both sides, if the known depths are older than age.
func (c *faktoryConn) readDepths(b *sequenceSide, age time.Duration) error {
	for i, s := range []*sequenceSide{c.server, b} {
		if !c.f.depths[i].due(age) {
			continue
		}
		reply, err := c.call(s, []byte("INFO\r\n"))
		if err != nil && !s.broker {
			return err
		}
		c.f.depths[i].read(reply)
	}
	return nil
}

// owned records which side the fetched job came from.
func (c *faktoryConn) owned(broker bool) func([]byte) []byte {
	return func(reply []byte) []byte {
		if text := wire.RESPText(reply); len(text) > 0 && !wire.IsRESPError(reply) {
			c.f.owners.set(jidOf(text), broker)
		}
		return reply
	}
}

// finish passes ACK and FAIL to the side that has handed out the job. If the side is unknown, it passes them to both,
// which is safe because the job is reserved on only one side.
func (c *faktoryConn) finish(p []byte, arg string) error {
	if !c.s.any() {
		return c.pass(c.server, p, nil)
	}
	jid := jidOf([]byte(arg))
	broker, known := c.f.owners.of(jid)
	if known && !broker {
		c.f.owners.forget(jid)
		return c.pass(c.server, p, nil)
	}
	b, err := c.atBroker()
	if known {
		if err != nil {
			return c.respond(faktoryError(err))
		}
		return c.pass(b, p, func(reply []byte) []byte {
			if !wire.IsRESPError(reply) {
				c.f.owners.forget(jid)
			}
			return reply
		})
	}
	if err != nil {
		return c.pass(c.server, p, nil)
	}
	reply, err := c.call(c.server, p)
	if err != nil {
		return err
	}
	if other, err := c.call(b, p); err == nil && wire.IsRESPError(reply) {
		reply = other
	}
	return c.respond(reply)
}

// beat sends the heartbeat to both sides. Either side may quiet or terminate the worker.
func (c *faktoryConn) beat(p []byte) error {
	if !c.s.any() {
		return c.pass(c.server, p, nil)
	}
	b, err := c.atBroker()
	if err != nil {
		return c.pass(c.server, p, nil)
	}
	reply, err := c.call(c.server, p)
	if err != nil {
		return err
	}
	if other, err := c.call(b, p); err == nil && stateRank(other) > stateRank(reply) {
		reply = other
	}
	return c.respond(reply)
}

// stateRank orders the states in replies to BEAT: running, quiet, terminate.
func stateRank(reply []byte) int {
	var s struct {
		State string `json:"state"`
	}
	if wire.IsRESPError(reply) || json.Unmarshal(wire.RESPText(reply), &s) != nil {
		return 0
	}
	switch s.State {
	case "terminate":
		return 2
	case "quiet":
		return 1
	}
	return 0
}
