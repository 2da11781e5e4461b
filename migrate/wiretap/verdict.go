package wiretap

import (
	"slices"
	"sync"
	"time"
)

// Reasons for unknown requests.
const (
	whyReport = "reports about the whole server"
	whyNoJob  = "waits that ended without a job while jobs came"
	whyBefore = "jobs from before the comparison"
	whyLeft   = "clients that left before both replies"
	whyScript = "scripts that were loaded before the comparison"
	whySkip   = "skipped"
)

// verdicts compares replies and keeps the state for that. Any goroutine may call it.
type verdicts struct {
	p    protocol
	wait times
	free func(*exchange) // returns what an exchange holds

	mu    sync.Mutex // guards the fields below
	tally tally
	state
}

// state is what a comparison knows of the jobs. It starts empty, and again after a gap.
type state struct {
	ids    idPairs
	ledger *ledger
	open   map[*exchange]time.Time // played but not settled exchanges, with the time
	pushes map[string]*pushList

	// Deliveries that differed between the servers: jobs that one server has delivered and the other has not delivered
	// yet. The maps have the job's id at the first server.
	swapped  map[*exchange]*swap
	up, down map[string]delivery

	// holders has the jobs that the second server gave to a connection of the comparison itself, by their id at the
	// first server.
	holders map[string]int
}

// swap is an exchange whose replies name different jobs.
type swap struct {
	since time.Time
	open  int // jobs that the other server has not delivered yet
}

// delivery is the normal form of a delivery, and its exchange.
type delivery struct {
	form string
	x    *exchange
}

func newState(fresh time.Duration) state {
	return state{
		ledger: newLedger(fresh), open: make(map[*exchange]time.Time), pushes: make(map[string]*pushList),
		swapped: make(map[*exchange]*swap), up: make(map[string]delivery), down: make(map[string]delivery),
		holders: make(map[string]int),
	}
}

// pushList holds the messages of one connection and key that the other server has not sent yet.
type pushList struct {
	line     int
	since    time.Time
	up, down []string
}

func newVerdicts(p protocol, t tally, wait times, free func(*exchange)) *verdicts {
	return &verdicts{p: p, wait: wait, free: free, tally: t, state: newState(wait.fresh)}
}

// anew forgets all jobs. The results so far are kept.
func (v *verdicts) anew(g Gap) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for x := range v.open {
		v.settle(x, whySkip)
	}
	v.tally.Jobs.account(v.ledger, v.tally.reversed, time.Now().Add(-v.wait.answer))
	v.state = newState(v.wait.fresh)
	v.tally.gap(g)
}

// unplayable returns the reason why a request cannot be played; empty if it can. It also returns the bytes to send.
// submitting means that the first server may have jobs that are not played yet.
func (v *verdicts) unplayable(x *exchange, submitting bool) (send []byte, why string) {
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
		if x.req.kind == takes {
			if x.up.none {
				return v.unplayableWait(x, submitting)
			}
			delete(v.ledger.askers, x.line)
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
			v.ledger.accept(id)
		}
	}
	return send, ""
}

// unplayableWait is unplayable for a wait that has ended without a job. The second server is asked as well, unless a
// job may be on its way to another client.
func (v *verdicts) unplayableWait(x *exchange, submitting bool) (send []byte, why string) {
	if a := v.ledger.askers[x.line]; a != nil {
		a.none = true
	}
	if x.req.poll == nil || submitting || !v.ledger.calm() || len(v.holders) >= maxHolders {
		return nil, whyNoJob
	}
	return x.req.poll, ""
}

// maxHolders limits the connections of the comparison that hold a job.
const maxHolders = 1000

// asks records that a client asks for a job.
func (v *verdicts) asks(line int, r *request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ledger.asks(line, r)
}

// overdue returns the requests of clients that have waited for long, if the second server may have a job for them.
func (v *verdicts) overdue() map[int]request {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.holders) >= maxHolders {
		return nil
	}
	return v.ledger.overdue()
}

// holder returns the connection that has the job of a request: that of the client, unless the second server gave the
// job to a connection of the comparison. last means that the request ends the job there.
func (v *verdicts) holder(x *exchange) (conn int, last bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, id := range v.named(x) {
		if conn, known := v.holders[id]; known {
			if x.req.ends {
				delete(v.holders, id)
			}
			return conn, x.req.ends
		}
	}
	return x.line, false
}

// named returns the jobs that a request names, by their ids at the first server.
func (v *verdicts) named(x *exchange) []string {
	if !x.req.id.empty() {
		return []string{x.req.id.of(x.req.raw)}
	}
	return x.req.names
}

// held records a job that the second server gave to a connection of the comparison.
func (v *verdicts) held(x *exchange, conn int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if x.down == nil {
		return false
	}
	for _, id := range idsOf(x.down) {
		if first, known := v.first(x.down, x.line, id); known {
			v.holders[first] = conn
			return true
		}
	}
	return false
}

// first returns the id at the first server of a job that a reply of the second one names.
func (v *verdicts) first(p *reply, line int, id string) (string, bool) {
	if !p.id.empty() {
		return v.ids.up(id)
	}
	_, known := v.ids.down(line, id)
	return id, known
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

// skipped counts a request that is left out.
func (v *verdicts) skipped(x *exchange) {
	v.mu.Lock()
	defer v.mu.Unlock()
	x.settled = true
	v.free(x)
	v.tally.unknown(x.req.verb, whySkip)
}

// played records that a request was sent to the second server. A request that has no reply is settled.
func (v *verdicts) played(x *exchange) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, id := range v.named(x) {
		v.ledger.asked(&x.req, id)
	}
	if a := v.ledger.askers[x.line]; a != nil && x.req.sleeps {
		a.none = false
	}
	if x.req.kind == takes && x.up != nil {
		for _, id := range idsOf(x.up) {
			v.ledger.event(id, x.line)
			x.late = v.ledger.delivered(id, true) || x.late
		}
	}
	if x.req.kind == silent {
		v.tally.unanswered(x.req.verb)
		x.settled = true
		v.free(x)
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
	if x.req.kind == takes {
		for _, id := range down {
			if first, known := v.first(x.down, x.line, id); known {
				x.late = v.ledger.delivered(first, false) || x.late
			}
		}
	}
	switch {
	case len(x.down.raw) > 9 && string(x.down.raw[:9]) == "-NOSCRIPT" && x.up.raw[0] != '-':
		v.settle(x, whyScript)
		return
	case x.req.kind == submits && same && len(up) == 1 && len(down) == 1:
		v.ids.learn(up[0], down[0])
		v.ledger.accept(up[0])
	case x.req.kind == takes && x.up.none && x.down.none:
		same = same || x.probe
	case x.req.kind == takes && len(up) == 1 && x.down.none:
		v.swap(x, up[0], "")
		return
	case x.req.kind == takes && x.up.none && len(down) == 1:
		if first, known := v.first(x.down, x.line, down[0]); known {
			v.swap(x, "", first)
			return
		}
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
// job, to any connection. An empty id means that the server delivered none.
func (v *verdicts) swap(x *exchange, up, down string) {
	v.swapped[x] = &swap{since: time.Now()}
	right := up == "" || v.match(v.down, v.up, up, delivery{v.form(x, x.up), x})
	right = (down == "" || v.match(v.up, v.down, down, delivery{v.form(x, x.down), x})) && right
	switch {
	case !right:
		v.forget(x)
		v.differ(x)
	case v.swapped[x].open == 0 || x.late && (up == "" || down == ""):
		v.forget(x)
		v.settle(x, "")
	}
}

// match records a delivery. It returns false if the other server has delivered the job with different content.
func (v *verdicts) match(others, own map[string]delivery, id string, d delivery) bool {
	other, delivered := others[id]
	if !delivered {
		own[id] = d
		v.swapped[d.x].open++
		return true
	}
	delete(others, id)
	if s := v.swapped[other.x]; s != nil {
		if s.open--; s.open == 0 {
			delete(v.swapped, other.x)
			v.settle(other.x, "")
		}
	}
	return other.form == d.form
}

// settle ends an exchange as equal, or as unknown.
func (v *verdicts) settle(x *exchange, why string) {
	if x.settled {
		return
	}
	x.settled = true
	delete(v.open, x)
	v.free(x)
	switch {
	case x.probe: // no client's request
	case why == "":
		v.tally.equal(x.req.verb)
	default:
		v.tally.unknown(x.req.verb, why)
	}
}

func (v *verdicts) differ(x *exchange) {
	x.settled = true
	delete(v.open, x)
	v.free(x)
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

// left settles the open exchanges of a closed connection. What the second server has not answered in time differs,
// although the client of the first server has left.
func (v *verdicts) left(line int) {
	before := time.Now().Add(-v.wait.answer)
	v.mu.Lock()
	defer v.mu.Unlock()
	for x, since := range v.open {
		switch {
		case x.line != line || v.swapped[x] != nil:
		case x.up != nil && x.down == nil && since.Before(before):
			v.differ(x)
		default:
			v.settle(x, whyLeft)
		}
	}
	for key, l := range v.pushes {
		if l.line == line {
			delete(v.pushes, key)
		}
	}
	v.ledger.leave(line)
}

// sweep settles exchanges that have waited too long. It returns the number that still wait.
func (v *verdicts) sweep() int {
	before := time.Now().Add(-v.wait.answer)
	v.mu.Lock()
	defer v.mu.Unlock()
	for x, s := range v.swapped {
		if s.since.Before(before) {
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

// forget drops the records of an exchange's deliveries.
func (v *verdicts) forget(x *exchange) {
	delete(v.swapped, x)
	for _, own := range []map[string]delivery{v.up, v.down} {
		for _, id := range slices.Concat(idsOf(x.up), idsOf(x.down)) {
			first, known := v.ids.up(id)
			for _, name := range []string{id, first} {
				if d, has := own[name]; has && d.x == x && (known || name == id) {
					delete(own, name)
				}
			}
		}
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
	r := v.tally.report()
	r.Jobs.account(v.ledger, v.tally.reversed, time.Now().Add(-v.wait.answer))
	return r
}
