package machine_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/internal/machine"
)

var update = flag.Bool("update", false, "write the results of the scripts anew")

// TestScripts plays testdata. A client is opened by its first command; the first letter of its name is its protocol: w
// Workq, g Gearman, f Faktory, s SQS, i the broker itself. Instants are written as distance from the beginning,
// "at=10s", or from now, "until=+10s".
//
// A result lists the replies of all clients, then each job that has changed its state. "held" marks a reply that waits
// for the open batch.
func TestScripts(t *testing.T) {
	t.Parallel()
	coretest.PlayScripts(t, "testdata/*.txt", *update, func(testing.TB) coretest.Player { return newPlayer() })
}

// protocols are the protocols of clients by the first letters of their names.
var protocols = map[byte]core.Protocol{
	'w': core.Workq, 'g': core.Gearman, 'f': core.Faktory, 'i': core.Internal, 's': core.SQS, 'h': core.HTTP,
}

// player is one section of a script: a machine, its store, and named clients.
type player struct {
	clk     *coretest.Clock
	start   core.Instant
	opts    machine.Options
	m       *machine.Machine
	store   *memStore
	clients []*actor
	looker  core.ClientID // for operations that are not in the script
	before  map[uint64]core.State
	lines   []string
	tags    uint64
	cursor  string // of the last list of jobs
}

// actor is a client of the script.
type actor struct {
	name  string
	id    core.ClientID
	muted bool            // its replies stay with the machine
	tags  map[uint64]bool // of its operations; true: to be shown
	list  []core.Op       // for its next atomic operation
}

func newPlayer() *player {
	p := &player{clk: coretest.NewClock(), store: newMemStore()}
	p.start = p.clk.Now()
	p.opts = machine.Options{
		Persist: true, Await: true, DefaultLease: 30 * time.Minute, CacheBytes: 1 << 20, Wakeup: -1,
	}
	p.boot()
	return p
}

// boot makes a machine of what is stored, with no clients.
func (p *player) boot() {
	p.opts.Random = rand.New(rand.NewPCG(1, 1))
	p.opts.StartedAt = p.clk.Now()
	p.m = machine.New(p.opts)
	if p.opts.Persist {
		if err := p.store.load(p.m, p.clk.Now()); err != nil {
			panic(err)
		}
		if _, err := p.commit(); err != nil {
			panic(err)
		}
	}
	p.clients = nil
	p.looker = p.m.OpenClient(0, core.ClientOptions{Protocol: core.Internal})
	p.before = p.states()
}

func (p *player) say(format string, args ...any) {
	p.lines = append(p.lines, fmt.Sprintf(format, args...))
}

// Do implements coretest.Player.
func (p *player) Do(c *coretest.Command) (string, error) {
	p.lines = nil
	known, err := p.direct(c)
	if !known && err == nil {
		err = p.act(c)
	}
	if err != nil {
		return "", err
	}
	if err := p.collect(); err != nil {
		return "", err
	}
	p.runs()
	p.changes()
	return strings.Join(p.lines, "\n"), nil
}

// Check implements coretest.Player.
func (p *player) Check() error { return p.m.Check() }

// direct runs the commands that are no operations of a client; known is false for others.
func (p *player) direct(c *coretest.Command) (known bool, err error) {
	known = true
	switch c.Word(0) {
	case "options":
		err = p.options(c)
	case "clock":
		var d time.Duration
		if d, err = time.ParseDuration(c.Word(1)); err == nil {
			p.clk.Advance(d)
			for p.m.Tick(p.clk.Now(), 3) {
			}
		}
	case "set-clock":
		var d time.Duration
		if d, err = time.ParseDuration(c.Word(1)); err == nil {
			p.m.ClockSet(p.clk.Advance(d), core.Instant(d/time.Microsecond))
		}
	case "commit":
		p.lines, err = p.commit()
	case "restart":
		p.m.Stop(core.ErrShutdown)
		p.m.Finish()
		if _, err = p.commit(); err == nil {
			p.boot()
			p.recovered()
		}
	case "crash":
		p.boot()
		p.recovered()
	case "show-log":
		err = p.showLog(c)
	case "broken":
		p.m.Stop(core.ErrStopped)
	case "full":
		p.m.Refuse(core.ErrDiskFull)
	case "roomy":
		p.m.Refuse(nil)
	case "close":
		err = p.close(c.Word(1))
	case "mute", "hear":
		p.actor(c.Word(1)).muted = c.Word(0) == "mute"
	case "now":
		p.say("%s", p.at(p.clk.Now()))
	default:
		known, err = p.look(c)
	}
	return known, err
}

// options starts the section anew with another machine.
func (p *player) options(c *coretest.Command) error {
	p.store = newMemStore()
	p.opts.Persist = c.Option("memory") == ""
	p.opts.Await = p.opts.Persist && c.Option("relaxed") == ""
	for name, set := range map[string]func(int){
		"wakeup": func(n int) { p.opts.Wakeup = n },
		"cache":  func(n int) { p.opts.CacheBytes = n },
		"poison": func(n int) { p.opts.PoisonAfter = n },
		"sort":   func(n int) { p.opts.SortStep = n },
		"step":   func(n int) { p.opts.LinkStep = n },
	} {
		if v := c.Option(name); v != "" {
			n, err := strconv.Atoi(v)
			if err != nil {
				return err
			}
			set(n)
		}
	}
	p.boot()
	return nil
}

// commit makes the open batch durable and says what was in it.
func (p *player) commit() ([]string, error) {
	var s machine.Sealed
	p.m.Seal(&s)
	lines, err := p.store.put(&s.Batch)
	if err != nil {
		return nil, err
	}
	p.m.Committed(&s)
	return lines, nil
}

func (p *player) close(name string) error {
	for i, a := range p.clients {
		if a.name == name {
			p.m.CloseClient(p.clk.Now(), a.id)
			p.clients = append(p.clients[:i], p.clients[i+1:]...)
			return nil
		}
	}
	return fmt.Errorf("no client %q", name)
}

// actor finds or opens a client.
func (p *player) actor(name string) *actor {
	for _, a := range p.clients {
		if a.name == name {
			return a
		}
	}
	a := &actor{name: name, tags: map[uint64]bool{}}
	o := core.ClientOptions{Protocol: protocols[name[0]], Address: "address of " + name}
	if o.Protocol != core.HTTP { // its clients are requests
		o.Close = func() {}
	}
	a.id = p.m.OpenClient(p.clk.Now(), o)
	p.clients = append(p.clients, a)
	return a
}

// act does a client's operation.
func (p *player) act(c *coretest.Command) error {
	if _, known := protocols[c.Word(0)[0]]; !known {
		return fmt.Errorf("unknown command %q", c.Word(0))
	}
	a := p.actor(c.Word(0))
	p.tags++
	tag, show := p.tags, false
	if v := c.Option("tag"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			return err
		}
		tag, show = n, true
	}
	listed := c.Word(1) == "plan" // an operation for the client's next "atomic"
	if listed {
		c.Words = append(c.Words[:1], c.Words[2:]...)
	}
	op, err := p.op(c, tag)
	switch {
	case err != nil:
		return err
	case listed:
		a.list, a.tags[tag] = append(a.list, op), show
		return nil
	case c.Word(1) == "atomic":
		op, a.list = &core.Atomic{Tag: tag, Ops: a.list}, nil
	}
	a.tags[tag] = show
	p.store.apply(p.m, p.clk.Now(), a.id, op)
	return nil
}

// collect takes the replies of all clients that listen.
func (p *player) collect() error {
	for _, a := range p.clients {
		if a.muted {
			continue
		}
		replies, needs := p.store.take(p.m, a.id)
		for i, r := range replies {
			show, known := a.tags[r.Tag]
			if !known {
				return fmt.Errorf("%s: a reply with tag %d, which no operation had", a.name, r.Tag)
			}
			if r.Commit != 0 && r.Commit != p.m.Open() {
				return fmt.Errorf("%s: a reply waits for commit %d, the open one is %d", a.name, r.Commit, p.m.Open())
			}
			w, needed := needs[i]
			if err := p.store.complete(&r, w, needed); err != nil {
				return err
			}
			text := p.reply(r)
			if show {
				text = fmt.Sprintf("#%d %s", r.Tag, text)
			}
			p.say("%s: %s", a.name, text)
		}
	}
	return nil
}

// states is the state of every job.
func (p *player) states() map[uint64]core.State {
	all := map[uint64]core.State{}
	for cursor := uint64(0); ; {
		p.m.Apply(p.clk.Now(), p.looker, []core.Op{&core.ListJobs{Cursor: cursor, Brief: true, Limit: 1000}})
		r := p.m.Take(p.looker, nil)[0]
		for _, j := range r.Jobs {
			all[j.Seq] = j.State
		}
		if cursor = r.Cursor; cursor == 0 {
			return all
		}
	}
}
