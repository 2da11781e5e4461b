package replica

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"broker/core"
)

// A leader whose disk hangs stops leading and ends its engine while it still waits for the disk. Another node leads;
// this node follows once its disk answers.
func TestLeaderWithAHangingDiskStepsDown(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "n1", "n2", "n3")
	var stuck atomic.Pointer[string] // id of the node whose disk hangs
	answers := make(chan struct{})
	answer := sync.OnceFunc(func() { close(answers) })
	t.Cleanup(answer) // before the nodes are closed
	c.change = func(o *Options) {
		o.hangFor = 5 * time.Second // the nodes elect the next leader by the timeout
		o.beforeWrite = func() {
			if id := stuck.Load(); id != nil && *id == o.ID {
				<-answers
			}
		}
	}
	c.start("n1", "n2", "n3")
	n, l, e := c.leader()
	submit(t, e, 0, 10, 10)
	c.caughtUp()
	stuck.Store(&n.o.ID)
	client := e.Open(core.ClientOptions{Protocol: core.Internal, Wake: func() {}})
	e.Do(client, []core.Op{&core.Submit{Job: &core.Job{ID: "in-between", Queue: "q", Type: "q"}}}, nil)
	select {
	case <-l.Lost():
	case <-time.After(time.Minute):
		t.Fatal("a leader leads on without a disk")
	}
	e.Abandon()
	shutdown(t, e) // waits for the engine's goroutines
	next, _, e := c.leader()
	if next == n {
		t.Fatal("it leads again without a disk")
	}
	submit(t, e, 20, 10, 10)
	stuck.Store(nil)
	answer()
	c.caughtUp()
	if got := jobs(t, e); got < 20 {
		t.Errorf("%d jobs", got)
	}
	shutdown(t, e)
}
