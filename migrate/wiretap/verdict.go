package wiretap

import (
	"slices"
	"sync"
	"time"
)

// answerWithin is how long the second server may take to reply.
const answerWithin = 5 * time.Second

// Why requests are unknown.
const (
	whyReport = "reports about the whole server"
	whyNoJob  = "waits that ended without a job"
	whyBefore = "jobs from before the comparison"
	whyLeft   = "clients that left before both replies"
	whyScript = "scripts that were loaded before the comparison"
)

// verdicts compares replies, and keeps what is needed for that. Any goroutine may call it.
type verdicts struct {
	p    protocol
	free func(bytes int) // returns the memory of an exchange

	mu     sync.Mutex // guards what follows
	ids    idPairs
	tally  tally
	open   map[*exchange]time.Time // played, not settled; with the time
	pushes map[string]*pushList

	// Deliveries of other jobs than at the first server, and which jobs of theirs the other server has still to deliver.
	swapped  map[*exchange]time.Time
	up, down map[string]string // id at the first server → normal form of its delivery
}

// pushList has the messages of one connection with the same key that the other server has not sent yet.
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

// unplayable says why a request cannot be played; empty: it can. It returns what to send.
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

// spawned reports whether a job is one of a known recurring job: its id has a number behind it.
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

// played notes that a request was sent to the second server. One without a reply is settled.
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

// server takes the first server's reply to a request that was played before it came.
func (v *verdicts) server(x *exchange, p *reply) {
	v.mu.Lock()
	defer v.mu.Unlock()
	x.up = p
	v.judge(x)
}

// broker takes the second server's reply.
func (v *verdicts) broker(x *exchange, p *reply) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if x.down == nil {
		x.down = p
		v.judge(x)
	}
}

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

// idsOf are the jobs that a reply names.
func idsOf(p *reply) []string {
	if !p.id.empty() {
		return []string{p.id.of(p.raw)}
	}
	return p.names
}

// form is a reply as it is compared.
func (v *verdicts) form(x *exchange, p *reply) string { return v.p.normal(&x.req, p.id.without(p.raw)) }

// swap keeps an exchange in which the servers delivered different jobs until each has delivered the other's, to whomever.
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

// match notes a delivery. It returns false if the other server has delivered the job in another form.
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
	d := Difference{Connection: x.line, Verb: x.req.verb, Request: quoted(x.req.raw), Server: quoted(x.up.raw), Broker: noReply}
	if x.down != nil {
		d.Broker = quoted(x.down.raw)
	}
	v.tally.different(d)
}

// push takes a message that a server sent unasked. first: it is the first server.
func (v *verdicts) push(line int, p *reply, first bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := p.key
	if !first {
		if up, known := v.ids.up(key); known {
			key = up
		}
	} else if _, known := v.ids.down(line, key); !known {
		return // of a job from before
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

// awaits reports whether the second server still owes a connection something that the first one has sent.
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

// left settles what a connection has open that has ended.
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

// sweep settles what has waited too long: since before that time. It returns how much still waits.
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

// forget drops the notes of a delivery that nobody matched.
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

// drop notes why the comparison has ended.
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
