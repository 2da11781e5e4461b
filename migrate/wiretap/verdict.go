package wiretap

import (
	"slices"
	"sync"
	"time"
)

// answerWithin is the time in which the second server must reply.
const answerWithin = 5 * time.Second

// Reasons for unknown requests.
const (
	whyReport = "reports about the whole server"
	whyNoJob  = "waits that ended without a job"
	whyBefore = "jobs from before the comparison"
	whyLeft   = "clients that left before both replies"
	whyScript = "scripts that were loaded before the comparison"
)

// verdicts compares replies and keeps the state for that. Any goroutine may call it.
type verdicts struct {
	p    protocol
	free func(bytes int) // returns the memory of an exchange

	mu     sync.Mutex // guards the fields below
	ids    idPairs
	tally  tally
	open   map[*exchange]time.Time // played but not settled exchanges, with the time
	pushes map[string]*pushList

	// Deliveries that differed between the servers: jobs that one server has delivered and the other has not delivered
	// yet.
	swapped  map[*exchange]time.Time
	up, down map[string]string // id at the first server → normal form of its delivery
}

// pushList holds the messages of one connection and key that the other server has not sent yet.
type pushList struct {
	line     int
	since    time.Time
	up, down []string
}

func newVerdicts(p protocol, t tally, free func(int)) *verdicts {
	return &verdicts{
		p: p, free: free, tally: t, open: make(map[*exchange]time.Time), pushes: make(map[string]*pushList),
		swapped: make(map[*exchange]time.Time), up: make(map[string]string), down: make(map[string]string),
	}
}

// unplayable returns the reason why a request cannot be played; empty if it can. It also returns the bytes to send.
func (v *verdicts) unplayable(x *exchange) (send []byte, why string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	send = x.req.raw
	if x.req.play != nil {
		send = x.req.play
	}
	if x.req.kind == ignored {
		return nil, whyReport
	}
	if !x.req.id.empty() {
		id, known := v.ids.down(x.line, x.req.id.of(x.req.raw))
		if !known {
			return nil, whyBefore
		}
		send = v.p.withID(&x.req, id)
	}
	names := x.req.names
	if x.up != nil {
		if x.req.kind == takes && x.up.none {
			return nil, whyNoJob
		}
		names = slices.Concat(names, x.up.names)
		if x.req.kind != submits && !x.up.id.empty() {
			names = append(names, x.up.id.of(x.up.raw))
		}
	}
	for _, name := range names {
		if _, known := v.ids.down(x.line, name); !known && !v.spawned(name) {
			return nil, whyBefore
		}
	}
	if x.up == nil || x.up.raw[0] != '-' {
		for _, id := range x.req.creates {
			v.ids.learn(id, id)
		}
	}
	return send, ""
}

// knows reports whether a job is known.
func (v *verdicts) knows(line int, id string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, known := v.ids.down(line, id)
	return known
}

// spawned reports whether a job belongs to a known recurring job: its id is the recurring job's id with a number.
func (v *verdicts) spawned(name string) bool {
	at := len(name) - 1
	for at > 0 && name[at] >= '0' && name[at] <= '9' {
		at--
	}
	if at <= 0 || at == len(name)-1 || name[at] != '-' {
		return false
	}
	_, known := v.ids.down(0, name[:at])
	return known
}

// unknown counts a request that is not compared.
func (v *verdicts) unknown(verb, why string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tally.unknown(verb, why)
}

// played records that a request was sent to the second server. A request that has no reply is settled.
func (v *verdicts) played(x *exchange) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if x.req.kind == silent {
		v.tally.unanswered(x.req.verb)
		x.settled = true
		v.free(x.bytes)
		return
	}
	v.open[x] = time.Now()
}

// server receives the first server's reply to a request that was played before the reply.
func (v *verdicts) server(x *exchange, p *reply) {
	v.mu.Lock()
	defer v.mu.Unlock()
	x.up = p
	v.judge(x)
}

// broker receives the second server's reply.
func (v *verdicts) broker(x *exchange, p *reply) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if x.down == nil {
		x.down = p
		v.judge(x)
	}
}

// judge compares the replies of an exchange once both have arrived.
func (v *verdicts) judge(x *exchange) {
	if x.settled || x.up == nil || x.down == nil {
		return
	}
	same := v.form(x, x.up) == v.form(x, x.down)
	up, down := idsOf(x.up), idsOf(x.down)
	switch {
	case len(x.down.raw) > 9 && string(x.down.raw[:9]) == "-NOSCRIPT" && x.up.raw[0] != '-':
		v.settle(x, whyScript)
		return
	case x.req.kind == submits && same && len(up) == 1 && len(down) == 1:
		v.ids.learn(up[0], down[0])
	case len(up) == 1 && len(down) == 1 && !x.up.id.empty():
		partner, _ := v.ids.down(x.line, up[0])
		if partner != down[0] && x.req.kind == takes {
			if first, known := v.ids.up(down[0]); known {
				v.ids.alias(x.line, up[0], down[0])
				v.swap(x, up[0], first)
				return
			}
		}
		same = same && partner == down[0]
	case x.req.kind == takes && len(up) == 1 && len(down) == 1 && up[0] != down[0]:
		v.swap(x, up[0], down[0])
		return
	}
	if same {
		v.settle(x, "")
	} else {
		v.differ(x)
	}
}

// idsOf returns the jobs that a reply names.
func idsOf(p *reply) []string {
	if !p.id.empty() {
		return []string{p.id.of(p.raw)}
	}
	return p.names
}

// form returns a reply in the form that is compared.
func (v *verdicts) form(x *exchange, p *reply) string { return v.p.normal(&x.req, p.id.without(p.raw)) }

// swap keeps an exchange in which the servers delivered different jobs, until each server has delivered the other's
// job, to any connection.
func (v *verdicts) swap(x *exchange, up, down string) {
	v.swapped[x] = time.Now()
	wrong := !v.match(v.down, v.up, up, v.form(x, x.up)) || !v.match(v.up, v.down, down, v.form(x, x.down))
	if wrong {
		delete(v.swapped, x)
		v.differ(x)
		return
	}
	if len(v.up) == 0 && len(v.down) == 0 {
		for other := range v.swapped {
			v.settle(other, "")
		}
		clear(v.swapped)
	}
}

// match records a delivery. It returns false if the other server has delivered the job with different content.
func (v *verdicts) match(others, own map[string]string, id, form string) bool {
	other, delivered := others[id]
	if !delivered {
		own[id] = form
		return true
	}
	delete(others, id)
	return other == form
}

// settle ends an exchange as equal, or as unknown.
func (v *verdicts) settle(x *exchange, why string) {
	if x.settled {
		return
	}
	x.settled = true
	delete(v.open, x)
	v.free(x.bytes)
	if why == "" {
		v.tally.equal(x.req.verb)
	} else {
		v.tally.unknown(x.req.verb, why)
	}
}

func (v *verdicts) differ(x *exchange) {
	x.settled = true
	delete(v.open, x)
	v.free(x.bytes)
	d := Difference{
		Connection: x.line, Verb: x.req.verb, Request: quoted(x.req.raw), Server: quoted(x.up.raw), Broker: noReply,
	}
	if x.down != nil {
		d.Broker = quoted(x.down.raw)
	}
	v.tally.different(d)
}

// push receives an unsolicited message. first means that the first server sent it.
func (v *verdicts) push(line int, p *reply, first bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := p.key
	if !first {
		if up, known := v.ids.up(key); known {
			key = up
		}
	} else if _, known := v.ids.down(line, key); !known {
		return // a job from before the comparison
	}
	form := v.p.normal(nil, p.id.without(p.raw))
	key = aliasKey(line, key)
	l := v.pushes[key]
	if l == nil {
		l = &pushList{line: line, since: time.Now()}
		v.pushes[key] = l
	}
	if first {
		l.up = append(l.up, form)
	} else {
		l.down = append(l.down, form)
	}
	if len(l.up) == 0 || len(l.down) == 0 {
		return
	}
	if l.up[0] == l.down[0] {
		v.tally.Pushes++
	} else {
		v.strayPush(line, l.up[0], l.down[0])
	}
	if l.up, l.down = l.up[1:], l.down[1:]; len(l.up)+len(l.down) == 0 {
		delete(v.pushes, key)
	}
}

func (v *verdicts) strayPush(line int, up, down string) {
	d := Difference{Connection: line, Verb: "message", Request: noReply, Server: noReply, Broker: noReply}
	if up != "" {
		d.Server = quoted([]byte(up))
	}
	if down != "" {
		d.Broker = quoted([]byte(down))
	}
	v.tally.different(d)
}

// awaits reports whether the second server must still send a message that the first server has sent on a connection.
func (v *verdicts) awaits(line int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for x := range v.open {
		if x.line == line && x.up != nil && x.down == nil {
			return true
		}
	}
	for _, l := range v.pushes {
		if l.line == line && len(l.up) > 0 {
			return true
		}
	}
	return false
}

// left settles the open exchanges of a closed connection.
func (v *verdicts) left(line int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for x := range v.open {
		if x.line == line && v.swapped[x].IsZero() {
			v.settle(x, whyLeft)
		}
	}
	for key, l := range v.pushes {
		if l.line == line {
			delete(v.pushes, key)
		}
	}
}

// sweep settles exchanges that have waited since before the given time. It returns the number that still wait.
func (v *verdicts) sweep(before time.Time) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	for x, since := range v.swapped {
		if since.Before(before) {
			delete(v.swapped, x)
			v.forget(x)
			v.differ(x)
		}
	}
	for x, since := range v.open {
		if _, swapped := v.swapped[x]; !swapped && x.up != nil && since.Before(before) {
			v.differ(x)
		}
	}
	for key, l := range v.pushes {
		if !l.since.Before(before) {
			continue
		}
		delete(v.pushes, key)
		for i := range max(len(l.up), len(l.down)) {
			v.strayPush(l.line, at(l.up, i), at(l.down, i))
		}
	}
	return len(v.open) + len(v.pushes)
}

// forget drops the record of a delivery without a match.
func (v *verdicts) forget(x *exchange) {
	for _, id := range idsOf(x.up) {
		delete(v.up, id)
	}
	for _, id := range idsOf(x.down) {
		if !x.down.id.empty() {
			id, _ = v.ids.up(id)
		}
		delete(v.down, id)
	}
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

// drop records the reason for the end of the comparison.
func (v *verdicts) drop(why string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tally.Dropped = why
}

func (v *verdicts) report() Report {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.tally.report()
}
