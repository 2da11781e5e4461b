package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"broker/core"
	"broker/core/clock"
	"broker/core/engine"
)

// cluster is a cluster of nodes in this process, on loopback.
type cluster struct {
	t       *testing.T
	members []Member
	nodes   map[string]*Node
	dirs    map[string]string
	change  func(*Options)
	opening context.Context // ends the wait to become a member

	leaderless core.Instant // since when elect has seen no leader; zero: there was one
	waits      bool         // the test waits for the nodes to begin elections
}

// The times of test clusters. A node of a busy machine may not run for a while, or wait long for its disk, and must not
// lose its leadership by that. So elections do not begin by the timeout: elect begins them.
const (
	testElection = 10 * time.Second
	testHang     = time.Minute
	electAfter   = 500 * time.Millisecond // the time in which nodes elect the successor of a leader that has left
)

func newCluster(t *testing.T, ids ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, nodes: map[string]*Node{}, dirs: map[string]string{}, opening: t.Context()}
	for _, id := range ids {
		c.members = append(c.members, Member{ID: id, Address: freeAddress(t)})
		c.dirs[id] = filepath.Join(t.TempDir(), id)
	}
	t.Cleanup(func() {
		for _, n := range c.nodes {
			_ = n.Close() // the test is over
		}
	})
	return c
}

// startedCluster makes a cluster of three nodes that run.
func startedCluster(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, "n1", "n2", "n3")
	c.start("n1", "n2", "n3")
	return c
}

// freeAddress returns an address that is not in use.
func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().String()
}

// newStoppedCluster makes a cluster of three nodes that have stored jobs and are stopped.
func newStoppedCluster(t *testing.T) *cluster {
	t.Helper()
	c := startedCluster(t)
	_, _, e := c.leader()
	submit(t, e, 0, 10, 10)
	shutdown(t, e)
	c.caughtUp()
	c.stopAll()
	return c
}

// open opens one node and returns when it is a member.
func (c *cluster) open(id string) (*Node, error) {
	c.t.Helper()
	m, _ := find(c.members, id)
	ln, err := net.Listen("tcp", m.Address)
	if err != nil {
		c.t.Fatal(err)
	}
	o := Options{
		ID: id, Members: c.members, Dir: c.dirs[id], Listener: ln, ElectionTimeout: testElection, hangFor: testHang,
		Log: func(level slog.Level, text string, fields ...any) {
			if level >= slog.LevelInfo || testing.Verbose() && os.Getenv("RAFT_DEBUG") != "" {
				c.t.Log(append([]any{id, level, text}, fields...)...)
			}
		},
	}
	if c.change != nil {
		c.change(&o)
	}
	ctx, cancel := context.WithTimeout(c.opening, 60*time.Second)
	defer cancel()
	return Open(ctx, o)
}

// start opens nodes at once.
func (c *cluster) start(ids ...string) {
	c.t.Helper()
	c.openAll(func(id string, err error) { c.t.Fatalf("%s: %v", id, err) }, ids...)
}

// openAll opens nodes at once; failed gets the error of one that cannot become a member.
func (c *cluster) openAll(failed func(id string, err error), ids ...string) {
	c.t.Helper()
	type result struct {
		id  string
		n   *Node
		err error
	}
	results := make(chan result, len(ids))
	for _, id := range ids {
		go func() {
			n, err := c.open(id)
			results <- result{id, n, err}
		}()
	}
	for range ids {
		r := <-results
		if r.err != nil {
			failed(r.id, r.err)
			continue
		}
		c.nodes[r.id] = r.n
	}
}

// stop closes a node.
func (c *cluster) stop(id string) {
	c.t.Helper()
	if err := c.nodes[id].Close(); err != nil {
		c.t.Fatalf("%s: %v", id, err)
	}
	delete(c.nodes, id)
}

// stopAll closes the nodes that run, one after the other.
func (c *cluster) stopAll() {
	c.t.Helper()
	for id := range c.nodes {
		c.stop(id)
	}
}

// leader waits until a node leads, and opens its engine.
func (c *cluster) leader() (*Node, *Leadership, *engine.Engine) {
	c.t.Helper()
	var node *Node
	var lead *Leadership
	var led *engine.Engine
	eventually(c.t, func() string {
		for _, n := range c.nodes {
			select {
			case l := <-n.Leads():
				var o engine.Options
				l.Attach(&o)
				e, err := engine.Open(o)
				if err != nil {
					<-l.Lost() // otherwise the test hangs, and shows where
					continue
				}
				l.Serving(true)
				node, lead, led = n, l, e
				return ""
			case err := <-n.Failed():
				c.t.Fatal(err)
			default:
			}
		}
		c.elect()
		return "nobody leads"
	})
	return node, lead, led
}

// elect begins an election at the node with the longest log if no node has led or was a candidate for electAfter.
func (c *cluster) elect() {
	var longest *Node
	var end findings
	for _, n := range c.nodes {
		if s := n.raft.State(); s == raft.Leader || s == raft.Candidate || c.waits {
			c.leaderless = 0
			return
		}
		log := findings{Index: n.raft.LastIndex()}
		var last raft.Log
		if n.logs.GetLog(log.Index, &last) == nil {
			log.Term = last.Term
		}
		if n.status().Role != "learner" && (longest == nil || log.compareLogs(end) > 0) {
			longest, end = n, log
		}
	}
	switch now := (clock.System{}).Now(); {
	case longest == nil:
	case c.leaderless == 0:
		c.leaderless = now
	case now.Sub(c.leaderless) >= electAfter:
		c.leaderless = 0
		longest.campaign()
	}
}

// eventually waits for a condition that depends on elections and sockets; the result of check says what is missing.
func eventually(t *testing.T, check func() string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	for {
		missing := check()
		if missing == "" {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal(missing)
		}
	}
}

// submit submits jobs and waits until they are committed.
func submit(t *testing.T, e *engine.Engine, from, n, bodyBytes int) {
	t.Helper()
	client := e.Open(core.ClientOptions{Protocol: core.Internal, Wake: func() {}})
	defer e.Close(client)
	for i := range n {
		job := &core.Job{
			ID: fmt.Sprint("job-", from+i), Queue: "q", Type: "q", Body: bytes.Repeat([]byte("x"), bodyBytes),
		}
		r := e.Do(client, []core.Op{&core.Submit{Job: job}}, nil)
		if len(r) != 1 || r[0].Err != nil {
			t.Fatalf("%+v", r)
		}
		if i == n-1 {
			eventually(t, func() string {
				if e.Stopped() {
					t.Fatal("the engine has stopped")
				}
				if e.Committed() < r[0].Commit {
					return "the job is not committed"
				}
				return ""
			})
		}
	}
}

func jobs(t *testing.T, e *engine.Engine) int {
	t.Helper()
	if err := e.Check(); err != nil {
		t.Fatal(err)
	}
	for _, r := range core.DoOnce(e, core.Internal, &core.ReadStats{}) {
		if r.Stats != nil {
			return r.Stats.Jobs[core.Ready]
		}
	}
	t.Fatal("no stats")
	return 0
}

func shutdown(t *testing.T, e *engine.Engine) {
	t.Helper()
	if err := e.Shutdown(); err != nil {
		t.Error(err)
	}
}

// follower is a node that does not lead.
func (c *cluster) follower(leader *Node) string {
	for _, m := range c.members {
		if m.ID != leader.o.ID {
			return m.ID
		}
	}
	panic("a cluster of one")
}

// catchUpByCopy stops a node, submits jobs with the numbers from from to 400, which are too many for the log, and
// starts the node again.
func (c *cluster) catchUpByCopy(victim string, leader *Node, e *engine.Engine, from int) {
	c.t.Helper()
	c.stop(victim)
	for ; from < 400; from += 10 {
		submit(c.t, e, from, 10, 10_000)
	}
	eventually(c.t, func() string {
		if low, _ := leader.logs.log.Bounds(); low > 20 {
			return ""
		}
		return "the log is not cut"
	})
	c.start(victim)
	c.caughtUp()
}

// caughtUp waits until all nodes have applied all committed entries.
func (c *cluster) caughtUp() {
	c.t.Helper()
	eventually(c.t, func() string {
		var end, behind uint64
		for _, n := range c.nodes {
			end = max(end, n.raft.CommitIndex())
		}
		voters := 0
		for _, n := range c.nodes {
			if n.raft.AppliedIndex() < end {
				behind++
			}
			if n.status().Role != "learner" {
				voters++
			}
		}
		if behind == 0 && voters == len(c.nodes) {
			return ""
		}
		return fmt.Sprintf("%d nodes are behind %d, %d vote", behind, end, voters)
	})
}

func TestJobsSurviveTheirLeader(t *testing.T) {
	t.Parallel()
	c := startedCluster(t)
	first, lead, e := c.leader()
	submit(t, e, 0, 100, 10)
	submit(t, e, 100, 3, 3*partBytes+17) // in parts
	shutdown(t, e)
	c.stop(first.o.ID)
	<-lead.Lost()
	second, _, e := c.leader()
	if n := jobs(t, e); n != 103 {
		t.Errorf("%d jobs with the second leader", n)
	}
	submit(t, e, 200, 10, 10)
	c.start(first.o.ID)
	c.caughtUp()
	shutdown(t, e)
	c.stop(second.o.ID)
	_, _, e = c.leader()
	if n := jobs(t, e); n != 113 {
		t.Errorf("%d jobs with the third leader", n)
	}
	shutdown(t, e)
	c.stopAll()
	c.start("n1", "n2", "n3")
	_, _, e = c.leader()
	if n := jobs(t, e); n != 113 {
		t.Errorf("%d jobs after all nodes were restarted", n)
	}
	shutdown(t, e)
}

// The store of a single broker becomes the cluster's store, whichever node has it.
func TestNewClusterKeepsTheJobsOfItsFounder(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "n1", "n2", "n3")
	alone, err := engine.Open(engine.Options{Dir: c.dirs["n3"]})
	if err != nil {
		t.Fatal(err)
	}
	submit(t, alone, 0, 50, 100)
	shutdown(t, alone)
	c.start("n1", "n2", "n3")
	_, _, e := c.leader()
	if n := jobs(t, e); n != 50 {
		t.Errorf("%d jobs", n)
	}
	submit(t, e, 100, 50, 100)
	shutdown(t, e)
	c.caughtUp()
	c.stopAll()
	if _, err := engine.Open(engine.Options{Dir: c.dirs["n1"]}); !errors.Is(err, engine.ErrMember) {
		t.Errorf("a broker of its own opens the store of a member: %v", err)
	}
}

// A node whose folder was emptied gets a copy, and its vote once it has caught up.
func TestEmptiedNodeComesBack(t *testing.T) {
	t.Parallel()
	c := startedCluster(t)
	first, _, e := c.leader()
	submit(t, e, 0, 100, 10)
	victim := c.follower(first)
	c.caughtUp()
	c.stop(victim)
	submit(t, e, 100, 100, 10)
	if err := os.RemoveAll(c.dirs[victim]); err != nil {
		t.Fatal(err)
	}
	c.start(victim)
	c.caughtUp()
	shutdown(t, e)
	c.stop(first.o.ID) // the leader is one of the other two now, and may be the emptied one
	_, _, e = c.leader()
	if n := jobs(t, e); n != 200 {
		t.Errorf("%d jobs", n)
	}
	shutdown(t, e)
}

// A follower that lags behind by more than the log gets a copy of the store.
func TestLogIsCut(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "n1", "n2", "n3")
	c.change = func(o *Options) { o.MaxLogBytes = 1 << 20 }
	c.start("n1", "n2", "n3")
	first, _, e := c.leader()
	victim := c.follower(first)
	c.caughtUp()
	c.catchUpByCopy(victim, first, e, 0)
	for id, n := range c.nodes {
		if got, want := n.store.Load().Position(), first.store.Load().Position(); got != want {
			t.Errorf("%s is at %+v, the leader at %+v", id, got, want)
		}
	}
	shutdown(t, e)
	c.stopAll()
	c.start("n1", "n2", "n3")
	_, _, e = c.leader()
	if n := jobs(t, e); n != 400 {
		t.Errorf("%d jobs", n)
	}
	shutdown(t, e)
}

// If the majority is lost, the store of one node becomes the store of a single broker, and a new cluster can start with
// it.
func TestDetachedNodeHasAllJobs(t *testing.T) {
	t.Parallel()
	c := startedCluster(t)
	_, _, e := c.leader()
	submit(t, e, 0, 50, 100)
	backup := filepath.Join(t.TempDir(), "backup")
	if err := e.Backup(backup); err != nil {
		t.Fatal(err)
	}
	submit(t, e, 50, 20, 100)
	shutdown(t, e)
	c.caughtUp()
	c.stopAll()
	if _, err := Detach(c.dirs["n2"]); err != nil {
		t.Fatal(err)
	}
	if _, err := Detach(c.dirs["n2"]); err == nil {
		t.Error("a store of its own is detached")
	}
	for dir, want := range map[string]int{c.dirs["n2"]: 70, backup: 50} {
		alone, err := engine.Open(engine.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if n := jobs(t, alone); n != want {
			t.Errorf("%s: %d jobs, want %d", dir, n, want)
		}
		shutdown(t, alone)
	}
	for _, id := range []string{"n1", "n3"} {
		if err := os.RemoveAll(c.dirs[id]); err != nil {
			t.Fatal(err)
		}
	}
	c.start("n1", "n2", "n3")
	_, _, e = c.leader()
	if n := jobs(t, e); n != 70 {
		t.Errorf("%d jobs in the new cluster", n)
	}
	shutdown(t, e)
}
