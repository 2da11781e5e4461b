package switchover

import (
	"encoding/json"
	"strings"
	"sync"
	"time"
)

// owners remembers which side has handed out a job: the last ones, at least as many as its bound.
type owners struct {
	most int

	mu       sync.Mutex // guards what follows
	new, old map[string]bool
}

func newOwners(most int) *owners {
	return &owners{most: most, new: make(map[string]bool), old: make(map[string]bool)}
}

// set says that a job came from the broker, or from the server.
func (o *owners) set(jid string, broker bool) {
	if len(jid) > maxName {
		return // both sides will be told of its end
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.new) >= o.most {
		o.new, o.old = make(map[string]bool), o.new
	}
	o.new[jid] = broker
}

// of reports which side a job came from, if that is known.
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

// depthsFor is how long the known depths of queues are used.
const depthsFor = 200 * time.Millisecond

// depths are how many jobs wait in the queues of a side. All connections share them: FETCH waits two seconds at an empty side, so it is
// sent to one that has jobs.
type depths struct {
	mu      sync.Mutex // guards what follows
	at      time.Time
	waiting map[string]int
	fooled  map[string]time.Time // queues that gave no job although some waited, such as paused ones
}

// fooledFor is how long the depth of such a queue does not count.
const fooledFor = 5 * time.Second

// fool says that a queue gave no job.
func (d *depths) fool(queue string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fooled == nil || len(d.fooled) >= maxQueues {
		d.fooled = make(map[string]time.Time)
	}
	d.fooled[queue] = time.Now()
}

// due reports whether the caller has to read the depths again.
func (d *depths) due(age time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.at) < age {
		return false
	}
	d.at = time.Now() // others use the old ones meanwhile
	return true
}

// read takes the depths from a reply to INFO.
func (d *depths) read(reply []byte) {
	var info struct {
		Faktory struct {
			Queues map[string]int `json:"queues"`
		} `json:"faktory"`
	}
	_ = json.Unmarshal(faktoryText(reply), &info) // an error: none is known to wait
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = info.Faktory.Queues
}

// first is the first of the queues that has jobs.
func (d *depths) first(queues []string) (queue string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range queues {
		if d.waiting[q] > 0 && time.Since(d.fooled[q]) > fooledFor {
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

// fetch takes a job from one side. It waits as long as a single server would.
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
	if err != nil { // the server's jobs go on
		return c.pass(c.server, p, c.owned(false))
	}
	var atServer, atBroker string
	var serverHas, brokerHas bool
	for _, age := range []time.Duration{depthsFor, 0} { // before it waits, it looks again
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
		if !brokerHas && allNew { // the next one comes there
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

// fetched notes which side the fetched job came from, or that there was none although the queue had some.
func (c *faktoryConn) fetched(broker bool, queue string) func([]byte) []byte {
	note := c.owned(broker)
	return func(reply []byte) []byte {
		if len(faktoryText(reply)) == 0 && queue != "" {
			side := 0
			if broker {
				side = 1
			}
			c.f.depths[side].fool(queue)
		}
		return note(reply)
	}
}

// shared lists the queues whose jobs may be on either side, and reports whether the new jobs of all queues go to the broker.
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

// readDepths reads the depths of both sides, if they are older than that.
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

// owned notes which side the fetched job came from.
func (c *faktoryConn) owned(broker bool) func([]byte) []byte {
	return func(reply []byte) []byte {
		if text := faktoryText(reply); len(text) > 0 && !isFaktoryError(reply) {
			c.f.owners.set(jidOf(text), broker)
		}
		return reply
	}
}

// finish passes ACK and FAIL to the side that has handed the job out. If that is not known, both are told: the other one does not have
// the job with a worker.
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
			return c.say(faktoryError(err))
		}
		return c.pass(b, p, func(reply []byte) []byte {
			if !isFaktoryError(reply) {
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
	if other, err := c.call(b, p); err == nil && isFaktoryError(reply) {
		reply = other
	}
	return c.say(reply)
}

// beat tells both sides that the worker is alive. Either one may quiet or end it.
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
	return c.say(reply)
}

// stateRank orders the replies to BEAT by what they ask for.
func stateRank(reply []byte) int {
	var s struct {
		State string `json:"state"`
	}
	if isFaktoryError(reply) || json.Unmarshal(faktoryText(reply), &s) != nil {
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
