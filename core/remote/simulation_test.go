package remote

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"broker/core"
	"broker/core/clock"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/core/internal/store"
)

// rough is a connection that delivers in pieces and late, and breaks after some bytes.
type rough struct {
	net.Conn
	rnd  *rand.Rand
	left int // bytes until it breaks
}

func (r *rough) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		piece := min(len(p)-n, 1+r.rnd.IntN(600))
		if r.left -= piece; r.left < 0 {
			_ = r.Conn.Close() // the peer sees it too
			return n, net.ErrClosed
		}
		if r.rnd.IntN(8) == 0 {
			time.Sleep(time.Duration(r.rnd.IntN(200)) * time.Microsecond) //nolint:forbidigo // a test
		}
		var wrote int
		wrote, err = r.Conn.Write(p[n : n+piece])
		n += wrote
	}
	return n, err
}

// nobody is an Owner that hears nothing.
type nobody struct{}

func (nobody) Asked(*Node, []byte, func([]byte)) {}
func (nobody) Told(*Node, []byte)                {}
func (nobody) Left(*Node)                        {}

// world is a leader, the next one after it, and so on, with the nodes whose clients they serve.
type world struct {
	t     *testing.T
	nodes []string
	disk  *coretest.Disk
	jobs  atomic.Int64 // submissions that were begun
	stop  atomic.Bool  // no more submissions

	leasesFirst bool // leases are committed before they are told
	breaks      bool // links are slow and break
	byHand      bool // the test commits

	late atomic.Bool // a leader has not waited for a node: the leases that it did not continue have ended

	turn    sync.Mutex // held while the leader changes; guards the fields below
	engine  *engine.Engine
	store   *store.Store
	server  *Server
	holds   *atomic.Bool // the leader is certain to lead
	term    uint64
	changed chan struct{} // closed when the leader does not lead any more
	conns   []net.Conn

	mu      sync.Mutex // guards the fields below
	acked   map[string]bool
	ended   map[string]int       // acknowledged completions
	story   map[string][]string  // what happened to each job, for messages
	live    map[string]liveLease // leases of which clients were told that do not end with their connection
	leases  int
	left    int // clients that have left with their request
	dropped int // clients whose connections were closed
	opened  int
}

// liveLease is a lease that its client was told of.
type liveLease struct {
	since, until core.Instant
	of           *simClient
	left         bool // its client has left since
	over         bool // its client has reported the end
}

// lead makes a leader of what is on the disk.
func (w *world) lead() {
	disk, err := store.Open(store.Options{Dir: "data", FS: w.disk.FS()})
	if err != nil {
		w.t.Error(err)
		return
	}
	holds, last := new(atomic.Bool), disk.Position().Number
	holds.Store(true)
	w.term++
	e, err := engine.Open(engine.Options{ManualCommits: true, Resumes: true, Replicated: &engine.Replicated{
		Store: disk, Journal: disk, Term: w.term, CommitLeases: w.leasesFirst, Holds: holds.Load,
	}})
	if err != nil {
		w.t.Error(err)
		return
	}
	s := NewServer(e, ServerOptions{
		Owner: nobody{}, Term: w.term, LastTerm: w.term - 1,
		Before: last,
	})
	w.engine, w.store, w.server, w.holds, w.changed, w.conns = e, disk, s, holds, make(chan struct{}), nil
	go func(term uint64) { // ends soon
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		nodes := w.nodes
		if term == 1 {
			nodes = nil
		}
		s.Settle(ctx, nodes, func() {
			w.late.CompareAndSwap(false, ctx.Err() != nil)
			e.Settle()
		})
	}(w.term)
	if w.byHand {
		return
	}
	go func(changed chan struct{}) { // ends with the lead
		for {
			select {
			case <-changed:
				return
			case <-time.After(2 * time.Millisecond):
			}
			w.turn.Lock()
			if w.engine == e {
				e.Flush()
			}
			w.turn.Unlock()
		}
	}(w.changed)
}

// fail makes the next leader. untold says that the last commit was not told to anybody. The leader before answers for
// some time, but commits nothing.
func (w *world) fail(untold bool, answers time.Duration) {
	w.turn.Lock()
	defer w.turn.Unlock()
	before, links, disk := w.engine, w.server, w.store
	w.mu.Lock()
	for id := range w.live {
		w.note(id, "leader %d fails", w.term)
	}
	w.mu.Unlock()
	cut := func() {
		for _, c := range w.conns {
			_ = c.Close() // its peer may have
		}
	}
	if untold {
		cut()
		before.Flush()
	}
	w.disk = w.disk.Crash(nil, 0)
	w.holds.Store(false)
	time.Sleep(answers) //nolint:forbidigo // a test
	cut()
	close(w.changed)
	w.lead()
	before.Abandon()
	go func() { // ends with its links
		links.Close(canceled())
		_ = before.Shutdown() // nothing of it counts
		_ = disk.Close()
	}()
}

// dial connects to the leader.
func (w *world) dial() (conn net.Conn, changed <-chan struct{}) {
	w.turn.Lock()
	defer w.turn.Unlock()
	near, far := net.Pipe()
	w.conns = append(w.conns, near, far)
	s := w.server
	go func() { // ends with the link
		if err := s.Serve(far); errors.Is(err, errMalformed) {
			w.t.Errorf("at the leader: %v", err)
		}
	}()
	return near, w.changed
}

// simClient is a client of a node.
type simClient struct {
	*world
	*worker
	rnd    *rand.Rand
	open   map[uint64]string // by tag: what a reply must name; empty: anything
	held   []promise
	leased []core.Reply // that it has leased
	tag    uint64
	inUse  map[uint64]bool // tags of foreground jobs whose end is to come
	holder core.Holder     // of its leases
	unsent []core.Op       // give back what it was not told that it has
}

// promise is what the client is told once a commit is told.
type promise struct {
	commit core.Commit
	tell   func()
	back   *core.Release // of a job that it hands out; nil: it hands out none
}

// ask applies an operation and checks the replies of all.
func (c *simClient) ask(op func(tag uint64) core.Op, names string) {
	c.tag++
	c.open[c.tag] = names
	c.see(c.worker.do(op(c.tag)))
}

func (c *simClient) see(all []core.Reply) {
	for i := range all {
		c.seeOne(&all[i])
	}
	c.keep()
}

// work finishes what the client has leased.
func (c *simClient) work() {
	jobs := c.leased
	c.leased = nil
	for _, r := range jobs {
		if c.rnd.IntN(3) == 0 {
			time.Sleep(time.Duration(c.rnd.IntN(3000)) * time.Microsecond) //nolint:forbidigo // a test
		}
		c.leave()
		done := &core.Complete{Ref: core.Ref{Seq: r.Seq}}
		if c.holder != core.HeldByConn {
			done.Authority = core.ByLeased
		}
		c.reports(r.Job.ID)
		c.ask(func(tag uint64) core.Op { done.Tag = tag; return done }, "done "+r.Job.ID)
	}
}

// reports is called before the client reports the end of a job.
func (c *simClient) reports(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note(id, "client %d reports its end", c.worker.id)
	if l := c.live[id]; l.of == c {
		l.over = true
		c.live[id] = l
	}
}

// leave makes another client of this one, as each request of some protocols is one. It is told nothing more of what it
// has asked, but its leases go on.
func (c *simClient) leave() {
	if c.holder != core.HeldByNobody || len(c.inUse) > 0 || c.worker.isClosed() || c.rnd.IntN(2) == 0 {
		return
	}
	clear(c.open)
	c.held = nil
	b := c.worker.broker
	b.Close(c.worker.id)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.worker = open(c.world.t, b)
	c.left++
	for id, l := range c.live {
		if l.of == c {
			l.left = true
			c.live[id] = l
		}
	}
}

// keep tells what may be told, in order.
func (c *simClient) keep() {
	committed := c.worker.broker.Committed()
	if c.worker.isClosed() {
		for _, p := range c.held {
			if p.back != nil {
				c.unsent = append(c.unsent, p.back)
			}
		}
		c.held = nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.held) > 0 && c.held[0].commit <= committed {
		c.held[0].tell()
		c.held = c.held[1:]
	}
}

func (c *simClient) seeOne(r *core.Reply) {
	names, asked := c.open[r.Tag]
	if !asked {
		c.world.t.Errorf("a reply twice, or to nobody's question: %+v", r)
		return
	}
	if r.Kind != core.Submitted || !c.inUse[r.Tag] {
		delete(c.open, r.Tag)
		delete(c.inUse, r.Tag)
	}
	tell, back := func() {}, (*core.Release)(nil)
	switch r.Kind {
	case core.Submitted:
		if !c.inUse[r.Tag] {
			tell = func() { c.acked[names] = true }
		}
	case core.Inspected:
		if id := r.Job.ID; id != names || string(r.Job.Body) != "body of "+id {
			c.world.t.Errorf("asked for %s, the reply names %s with %q", names, id, r.Job.Body)
		}
	case core.Assigned:
		id := r.Job.ID
		if string(r.Job.Body) != "body of "+id {
			c.world.t.Errorf("job %s comes with %q", id, r.Job.Body)
		}
		if tell = func() { c.has(r) }; c.holder != core.HeldByConn {
			back = &core.Release{Ref: core.Ref{Seq: r.Seq}, Epoch: r.Lease.Epoch}
		}
	case core.Accepted:
		tell = func() {
			c.ended[names]++
			c.note(strings.TrimPrefix(names, "done "), "client %d is told of its end", c.worker.id)
			delete(c.live, strings.TrimPrefix(names, "done "))
		}
	default:
	}
	c.held = append(c.held, promise{r.Commit, tell, back})
}

// note adds to the story of a job. The world's lock is held.
func (w *world) note(id, format string, args ...any) {
	if w.story == nil {
		w.story = make(map[string][]string)
	}
	w.story[id] = append(w.story[id], fmt.Sprintf(format, args...))
}

// has is called when the client is told that it has a job.
func (c *simClient) has(r *core.Reply) {
	c.note(r.Job.ID, "client %d is told of lease %d of %d", c.worker.id, r.Lease.Epoch, r.Seq)
	c.leased = append(c.leased, *r)
	c.leases++
	id := r.Job.ID
	l, is := c.live[id]
	stored := c.leasesFirst && !r.Job.Ephemeral // else it ends with its client's connection
	since, until := r.Lease.LeasedAt, r.Lease.LeasedAt.Add(r.Lease.LeaseFor)
	if is && (l.left || l.over) && r.Job.Ephemeral {
		// Its submission had no answer when the leader failed: it comes back behind the leases. The connection of a
		// worker that still has it is closed then; one that has left has none. Or its worker has reported the end,
		// which was lost with the leader, whose memory was all that had it: its client's node brings it back.
		is = false
	}
	if is && since < l.until && l.since < until && (stored || !c.breaks && !c.late.Load() && !l.of.worker.isClosed()) {
		c.world.t.Errorf("%s has a live lease until %d, and is leased again at %d:\n%s", id, l.until, since,
			strings.Join(c.story[id], "\n"))
	}
	if is && since < l.since {
		return // this client was slow, and has it no more
	}
	delete(c.live, id)
	if c.holder != core.HeldByConn {
		c.live[id] = liveLease{since: since, until: until, of: c}
	}
}

// waits reports whether a lease waits.
func (c *simClient) waits() bool {
	for _, names := range c.open {
		if names == "any" {
			return true
		}
	}
	return false
}

// step does something, and waits for what comes if there is nothing else to do.
func (c *simClient) step() {
	switch n := c.rnd.IntN(12); {
	case n < 5 && !c.stop.Load():
		id := fmt.Sprint("job-", c.jobs.Add(1))
		job := &core.Job{ID: id, Queue: "q", Origin: core.Workq, Body: []byte("body of " + id), RetainFor: time.Hour}
		c.ask(func(tag uint64) core.Op { return &core.Submit{Tag: tag, Job: job} }, id)
		if c.rnd.IntN(20) == 0 {
			c.ask(func(tag uint64) core.Op { return &core.Inspect{Tag: tag, Ref: core.Ref{ID: id}} }, id)
		}
	case n < 7 && !c.stop.Load():
		id := fmt.Sprint("fg-", c.jobs.Add(1))
		job := &core.Job{ID: id, Queue: "q", Origin: core.Workq, Body: []byte("body of " + id), Ephemeral: true}
		c.inUse[c.tag+1] = true
		c.ask(func(tag uint64) core.Op { return &core.Submit{Tag: tag, Job: job, Watch: core.WatchStream} }, id)
	case n == 7:
		if c.waits() && len(c.inUse) == 0 {
			c.worker.do(&core.CancelWaits{})
			maps.DeleteFunc(c.open, func(_ uint64, names string) bool { return names == "any" })
		}
	case !c.waits() && !c.worker.isClosed():
		until := c.worker.broker.Now().Add(time.Hour)
		op := &core.Lease{Queues: []string{"q"}, Deadline: until, Holder: c.holder}
		if c.holder != core.HeldByConn {
			op.LeaseFor = exclusiveFor
		}
		if c.holder == core.HeldByWorker {
			op.Worker = fmt.Sprint("worker ", c.worker.id)
		}
		c.ask(func(tag uint64) core.Op { op.Tag = tag; return op }, "any")
	default:
		select {
		case <-c.worker.woken:
			c.see(c.worker.do())
		case <-c.worker.closed:
		case <-time.After(time.Millisecond):
			c.keep()
		}
	}
	c.work()
}

// exclusiveFor is how long a lease lasts that does not end with its connection.
const exclusiveFor = 2 * time.Second

// serve is a client of a node after the other, until ends is closed.
func (w *world) serve(b *Broker, rnd *rand.Rand, ends <-chan struct{}) {
	for {
		protocol := []core.Protocol{core.Workq, core.Gearman}[rnd.IntN(2)] // one waits for no reply to the end of a job
		c := &simClient{
			world: w, worker: openAs(w.t, b, protocol), rnd: rnd, open: make(map[uint64]string),
			inUse:  make(map[uint64]bool),
			holder: []core.Holder{core.HeldByConn, core.HeldByNobody, core.HeldByWorker}[rnd.IntN(3)],
		}
		w.mu.Lock()
		w.opened++
		w.mu.Unlock()
		for !c.worker.isClosed() {
			select {
			case <-ends:
				if n := len(c.inUse); n > 0 {
					w.t.Errorf("%d foreground jobs have not ended", n)
				}
				return
			default:
				c.step()
			}
		}
		c.keep()
		core.DoOnce(b, core.Workq, c.unsent...) // as front-ends do
		b.Close(c.id)
		w.mu.Lock()
		w.dropped++
		w.mu.Unlock()
	}
}

// run is a node with some clients, over one link after the other.
func (w *world) run(node string, breaks bool, seed uint64, ends <-chan struct{}) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	b := NewBroker(BrokerOptions{Node: node, Clock: clock.System{}})
	var clients sync.WaitGroup
	for i := range uint64(6) {
		clients.Go(func() { w.serve(b, rand.New(rand.NewPCG(seed, i+2)), ends) })
	}
	done := make(chan struct{})
	go func() {
		clients.Wait()
		close(done)
	}()
	for round := uint64(0); ; round++ {
		near, changed := w.dial()
		left := 1 << 40
		if breaks && !w.stop.Load() {
			left = 20_000 + rnd.IntN(400_000)
		}
		up, err := b.Dial(&rough{Conn: near, rnd: rand.New(rand.NewPCG(seed, round)), left: left})
		if err != nil {
			continue // it broke at once
		}
		select {
		case <-changed:
		case <-up.Gone():
		case <-done:
			b.Shut()
			return
		}
		up.Hangup()
		if errors.Is(up.Reason(), errMalformed) {
			w.t.Errorf("at the node: %v", up.Reason())
		}
	}
}

// simulate runs clients of two nodes while leaders fail.
func simulate(t *testing.T, breaks, leasesFirst bool, seed uint64) *world {
	t.Helper()
	w := &world{
		t: t, nodes: []string{"a", "b"}, disk: coretest.NewDisk(), acked: map[string]bool{}, ended: map[string]int{},
		live: map[string]liveLease{}, leasesFirst: leasesFirst, breaks: breaks,
	}
	w.lead()
	ends := make(chan struct{})
	var nodes sync.WaitGroup
	for i, node := range w.nodes {
		nodes.Go(func() { w.run(node, breaks, seed+uint64(i), ends) })
	}
	rnd := rand.New(rand.NewPCG(seed, 9))
	for failures := 0; failures < 12 || !w.hasAcknowledged(100); failures++ {
		time.Sleep(time.Duration(20+rnd.IntN(80)) * time.Millisecond) //nolint:forbidigo // a test
		w.fail(rnd.IntN(2) == 0, time.Duration(rnd.IntN(2)*rnd.IntN(10))*time.Millisecond)
		if rnd.IntN(6) == 0 { // before all nodes have come to it
			w.fail(false, 0)
			failures++
		}
	}
	w.stop.Store(true)
	deadline := time.Now().Add(time.Minute) //nolint:forbidigo // a test
	for {
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // a test
		stats := core.DoOnce(w.engine, core.Internal, &core.ReadStats{Tag: 1})[0].Stats
		if stats.Jobs[core.Ready]+stats.Jobs[core.Leased] == 0 {
			break
		}
		if time.Now().After(deadline) { //nolint:forbidigo // a test
			t.Fatalf("jobs are forgotten: %v", stats.Jobs)
		}
	}
	time.Sleep(50 * time.Millisecond) //nolint:forbidigo // a test
	close(ends)
	nodes.Wait()
	w.check()
	w.server.Close(canceled())
	w.close()
	return w
}

// close closes the last leader.
func (w *world) close() {
	if err := errors.Join(w.engine.Shutdown(), w.store.Close()); err != nil {
		w.t.Error(err)
	}
}

// hasAcknowledged reports whether at least so many submissions are acknowledged.
func (w *world) hasAcknowledged(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked) >= n
}

func (w *world) check() {
	l := &leader{Engine: w.engine, t: w.t}
	for id := range w.acked {
		if job := l.job(id); job.State != core.Done {
			w.t.Errorf("%s is %v", id, job.State)
		}
	}
	for id, n := range w.ended {
		if n > 1 && id[:len("done job")] == "done job" {
			w.t.Errorf("%s: %d completions are acknowledged", id, n)
		}
	}
	w.t.Logf("late: %t; %d jobs, %d acknowledged, %d leases; %d of %d clients were closed, %d have left",
		w.late.Load(), w.jobs.Load(), len(w.acked), w.leases, w.dropped, w.opened, w.left)
}

// Clients of two nodes outlive their leaders: no reply comes twice or for another question, no job is lost or completed
// twice, no waiter is forgotten while there is work, and foreground jobs end.
func TestClientsOutliveTheirLeaders(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			// A client is closed that has read what is lost, or whose finish was not answered.
			if w := simulate(t, false, seed%2 == 1, 100*seed); w.dropped > 12*12/2 {
				t.Errorf("%d connections were closed by 12 failures of 12 clients", w.dropped)
			}
		})
	}
}

// The same, over links that are slow, cut messages and break.
func TestClientsOutliveTheirLeadersOverRoughLinks(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { simulate(t, true, seed%2 == 1, 100*seed+50) })
	}
}
