package cluster_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
)

// lasting are the protocols whose clients outlive a leader.
var lasting = []string{"gearman", "workq", "beanstalk", "faktory", "sqs", "http"}

// outliving is clients of nodes whose leader fails.
type outliving struct {
	c    *cluster
	stop chan struct{}
	done sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	acked  map[string]bool
	leased map[string]bool
	held   map[string]session // who has a job, or has finished it
	twice  map[string]session // who had a job when another leased it
	broken map[session]bool   // sessions that have ended
	unsure map[string]bool    // jobs that were leased, but not acknowledged, when the leader failed
	opened int
	ended  []string // why connections have ended
	pauses []time.Duration
}

// producersEach and workersEach are clients of each protocol at each node.
const (
	producersEach = 8
	workersEach   = 4
)

// leaderless is less than the ten seconds after which nodes close the connections of clients for lack of a leader.
const leaderless = 8 * time.Second

func (o *outliving) begin(nodes []int, all []protocol) {
	for _, i := range nodes {
		for _, p := range all {
			for range producersEach {
				o.done.Go(func() { o.client(p, i, o.produce) })
			}
			for range workersEach {
				o.done.Go(func() { o.client(p, i, o.work) })
			}
		}
	}
}

// client runs a session after the other until the load stops.
func (o *outliving) client(p protocol, node int, run func(session) error) {
	for !o.stopped() {
		s, err := p.dial(o.c.nodes[node])
		if err != nil {
			continue
		}
		o.mu.Lock()
		o.opened++
		o.mu.Unlock()
		if err := run(s); err != nil && !o.stopped() {
			o.mu.Lock()
			o.ended = append(o.ended, fmt.Sprint(p.name, ": ", err))
			o.broken[s] = true
			o.mu.Unlock()
		}
		_ = s.Close() // may be closed
	}
}

func (o *outliving) stopped() bool {
	select {
	case <-o.stop:
		return true
	default:
		return false
	}
}

var outlived atomic.Int64

func (o *outliving) produce(s session) error {
	var worst time.Duration
	defer func() {
		o.mu.Lock()
		o.pauses = append(o.pauses, worst)
		o.mu.Unlock()
	}()
	for !o.stopped() {
		id, began := jobID(int(outlived.Add(1))), time.Now()
		if err := s.submit(id); err != nil {
			return err
		}
		worst = max(worst, time.Since(began))
		o.mu.Lock()
		o.acked[id] = true
		o.mu.Unlock()
	}
	return nil
}

func (o *outliving) work(s session) error {
	for !o.stopped() {
		id, err := s.lease()
		if err == nil && id != "" {
			o.has(s, id)
			if f, is := s.(*faktory); is {
				err = f.beat()
			}
		}
		if err == nil && id != "" {
			_, err = s.finish(id)
		}
		if err != nil && !strings.Contains(err.Error(), "Duplicate result") { // its lease was lost with the leader
			return err
		}
	}
	return nil
}

// has notes that a client has a job.
func (o *outliving) has(s session, id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.leased[id] = true
	if other := o.held[id]; other != nil {
		o.twice[id] = other
	}
	o.held[id] = s
}

// fails notes what a leader may not have committed.
func (o *outliving) fails() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id := range o.held {
		if !o.acked[id] {
			o.unsure[id] = true
		}
	}
}

// leasedTwice are the jobs that were leased while a connection that has not ended had or had finished them. A request
// of SQS or HTTP has no connection to end when its job is lost before its commit.
func (o *outliving) leasedTwice() (all []string) {
	for id, first := range o.twice {
		asks := false
		switch first.(type) {
		case *messages, *requests:
			asks = true
		}
		if !o.broken[first] && !(asks && o.unsure[id]) {
			all = append(all, fmt.Sprintf("%s (%T)", id, first))
		}
	}
	return all
}

// The connections of the clients of other nodes outlive a leader that is killed, and what was acknowledged is not lost.
func TestClientsOutliveALeaderThatIsKilled(t *testing.T) {
	t.Parallel()
	opened, ended, _ := killLeaders(t, 3)
	// Those end whose operation the next leader has, while the reply was lost with the leader: none on a quiet machine,
	// and at most what the nodes had asked at that moment.
	if ended*4 > opened {
		t.Errorf("%d of %d connections have ended", ended, opened)
	}
}

// killLeaders kills one leader after the other while clients of the other nodes work, and tells how many connections
// were opened, how many of them ended, and the longest pause of a producer at each kill.
func killLeaders(t *testing.T, kills int) (opened, ended int, pauses []time.Duration) {
	t.Helper()
	c, all := linked(t)
	all = slices.DeleteFunc(all, func(p protocol) bool { return !slices.Contains(lasting, p.name) })
	acked, leased := map[string]bool{}, map[string]bool{}
	for kill := range kills {
		leader := c.leader()
		nodes := []int{(leader + 1) % size, (leader + 2) % size}
		o := &outliving{
			c: c, stop: make(chan struct{}), acked: acked, leased: leased, held: make(map[string]session),
			twice: make(map[string]session), broken: make(map[session]bool), unsure: make(map[string]bool),
		}
		o.begin(nodes, all)
		time.Sleep(time.Second)
		c.nodes[leader].Process.Kill()
		o.fails()
		killed := time.Now()
		c.awaitLeaderOtherThan(leader)
		time.Sleep(time.Second)
		close(o.stop)
		o.done.Wait()
		pauses = append(pauses, slices.Max(o.pauses))
		if pauses[kill] < leaderless { // otherwise nodes close the connections of their clients
			opened, ended = opened+o.opened, ended+len(o.ended)
		}
		t.Logf("kill %d: %d connections, %d ended %q, longest pause %v, %v", kill, o.opened, len(o.ended),
			o.ended[:min(len(o.ended), 8)], pauses[kill], time.Since(killed))
		if twice := o.leasedTwice(); len(twice) > 0 {
			t.Errorf("kill %d: %d jobs were leased twice: %v", kill, len(twice), twice[:min(len(twice), 8)])
		}
		c.restart(leader)
		c.caughtUp()
		c.awaitLinks()
	}
	drain(t, c, all, leased, acked)
	slices.Sort(pauses)
	t.Logf("%d kills: %d of %d connections ended; %d submissions acknowledged; longest pause median %v, worst %v",
		kills, ended, opened, len(acked), pauses[kills/2], pauses[kills-1])
	return opened, ended, pauses
}

// drain leases the rest, and checks that every acknowledged job was leased.
func drain(t *testing.T, c *cluster, all []protocol, leased, acked map[string]bool) {
	t.Helper()
	for _, p := range all {
		s := c.dial(p, c.leader())
		for n := 0; ; n++ {
			if f, is := s.(*faktory); is && n%1000 == 0 { // a silent worker is disconnected
				check(t, f.beat())
			}
			id, err := nowLeased(s)
			check(t, err)
			if id == "" {
				break
			}
			leased[id] = true
			_, err = s.finish(id)
			check(t, err)
		}
	}
	lost := 0
	for id := range acked {
		if !leased[id] {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d acknowledged jobs are lost", lost, len(acked))
	}
}

// Workers that sleep or wait, leases, and a foreground job with its client and worker go on at the next leader.
func TestWaitsLeasesAndForegroundJobsOutliveTheLeader(t *testing.T) {
	t.Parallel()
	c, all := linked(t)
	leader := c.leader()
	first, second := (leader+1)%size, (leader+2)%size
	dial := func(i int) *gearmanclient.Client {
		g, err := gearmanclient.Dial(c.nodes[i].Gearman)
		check(t, err)
		t.Cleanup(func() { _ = g.Close() }) // at the end
		return g
	}
	sleeper := dial(first)
	check(t, sleeper.Send(gearmanclient.CanDo, "later"))
	check(t, sleeper.Send(gearmanclient.PreSleep))
	client, worker := dial(first), dial(second)
	check(t, worker.Send(gearmanclient.CanDo, "now"))
	_, err := client.Submit(gearmanclient.SubmitJob, "now", "", "work")
	check(t, err)
	handle, _, _, body, err := worker.Grab(harness.Patience)
	if check(t, err); body != "work" {
		t.Fatalf("grabbed %q", body)
	}
	tube := all[slices.IndexFunc(all, func(p protocol) bool { return p.name == "beanstalk" })]
	holder := c.dial(tube, first)
	check(t, c.dial(tube, second).submit("held"))
	if id, err := await(holder); err != nil || id != "held" {
		t.Fatalf("leased %q, %v", id, err)
	}
	c.nodes[leader].Process.Kill()
	c.awaitLeaderOtherThan(leader)
	_, err = dial(second).Submit(gearmanclient.SubmitJobBg, "later", "", "x")
	check(t, err)
	_, err = sleeper.Expect(gearmanclient.Noop, harness.Patience)
	check(t, err)
	check(t, worker.Send(gearmanclient.WorkComplete, handle, "result"))
	p, err := client.Expect(gearmanclient.WorkComplete, harness.Patience)
	if check(t, err); p.Args(2)[1] != "result" {
		t.Errorf("the result is %q", p.Args(2))
	}
	other := c.dial(tube, second)
	if id, err := nowLeased(other); err != nil || id != "" {
		t.Errorf("a job that is leased was leased again: %q, %v", id, err)
	}
	_, err = holder.finish("held")
	check(t, err)
}
