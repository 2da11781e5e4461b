package remote

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"broker/core"
	"broker/core/clock"
)

// deaf is a connection whose end hears nothing more once it is deaf.
type deaf struct {
	net.Conn
	is     atomic.Bool
	closed chan struct{}
}

func (d *deaf) Read(p []byte) (int, error) {
	n, err := d.Conn.Read(p)
	if d.is.Load() {
		<-d.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (d *deaf) Close() error {
	defer func() { _ = recover() }() // it may be closed
	close(d.closed)
	return d.Conn.Close()
}

// A worker whose protocol has no reply to the end of a job goes on at a leader that has the end; what nobody can tell a
// client closes its connection.
func TestWorkerThatWaitsForNoReplyGoesOn(t *testing.T) {
	lease := func() core.Op { return &core.Lease{Tag: 8, Queues: []string{"next"}, Deadline: 1 << 62} }
	complete := func(seq uint64) core.Op { return &core.Complete{Tag: 7, Ref: core.Ref{Seq: seq}} }
	for _, c := range []struct {
		name string
		of   core.Protocol
		ops  func(seq uint64) []core.Op
		last bool // no later message is in the history
		lost bool // the message is not in the history
		stay bool
	}{
		{"a completion", core.Gearman, func(seq uint64) []core.Op {
			return []core.Op{complete(seq)}
		}, false, false, true},
		{"a completion that is lost", core.Gearman, func(seq uint64) []core.Op {
			return []core.Op{complete(seq)}
		}, false, true, true},
		{"a failure", core.Gearman, func(seq uint64) []core.Op {
			return []core.Op{&core.Fail{Tag: 7, Ref: core.Ref{Seq: seq}, Failure: &core.Failure{}}}
		}, false, false, true},
		{"a completion and a lease", core.Gearman, func(seq uint64) []core.Op {
			return []core.Op{complete(seq), lease()}
		}, false, false, true},
		{"a report, a completion and a lease", core.Gearman, func(seq uint64) []core.Op {
			return []core.Op{&core.Report{Tag: 6, Ref: core.Ref{Seq: seq}}, complete(seq), lease()}
		}, false, false, true},
		{"a completion whose message may be cut", core.Gearman, func(seq uint64) []core.Op {
			return []core.Op{complete(seq), lease()}
		}, true, false, false},
		{"a completion with a reply", core.Beanstalk, func(seq uint64) []core.Op {
			return []core.Op{complete(seq), lease()}
		}, false, false, false},
		{"a completion and a submission", core.Gearman, func(seq uint64) []core.Op {
			return []core.Op{complete(seq), &core.Submit{Tag: 8, Job: &core.Job{Queue: "other", Origin: core.Gearman}}}
		}, false, false, false},
		{"a look at what it completes then", core.Gearman, func(seq uint64) []core.Op {
			return []core.Op{&core.Inspect{Tag: 6, Ref: core.Ref{Seq: seq}}, complete(seq)}
		}, false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := oneAfterTheOther(t, false, "a")
			a := NewBroker(BrokerOptions{Node: "a", Clock: clock.System{}})
			t.Cleanup(a.Shut)
			near, _ := w.dial()
			conn := &deaf{Conn: near, closed: make(chan struct{})}
			link, err := a.Dial(conn)
			if err != nil {
				t.Fatal(err)
			}
			<-link.Ready()
			producer, worker, other := open(t, a), openAs(t, a, c.of), open(t, a)
			w.told(producer, producer.submit().Commit)
			seq := worker.do(&core.Lease{Tag: 2, Queues: []string{"q"}})[0].Seq
			conn.is.Store(true)
			answered := make(chan []core.Reply, 1)
			applied := func(seq uint64) func() bool {
				return func() bool {
					r := core.DoOnce(w.engine, core.Internal, &core.Inspect{Tag: 1, Ref: core.Ref{Seq: seq}})[0]
					return r.Kind == core.Failed || r.Info.State == core.Done || r.Info.State == core.Dead
				}
			}
			ops := c.ops(seq)
			go func() { answered <- worker.do(ops...) }()
			l := &leader{t: t}
			l.eventually("the end is applied", applied(seq))
			if !c.last {
				go other.do(&core.CreateQueue{Tag: 1, Queue: "later"}) // ends with its client
				l.eventually("the later message is applied", func() bool {
					r := core.DoOnce(w.engine, core.Internal, &core.InspectQueue{Tag: 1, Queue: "later"})[0]
					return r.Kind == core.Queues
				})
			}
			w.fail(!c.lost, 0) // unless it is lost, it commits, and nobody hears of it
			w.link(a)
			wait := time.Minute
			if c.stay { // it may only fail to be seen
				wait = 20 * time.Millisecond
			}
			select {
			case <-worker.closed:
			case <-time.After(wait):
			}
			if closed := worker.isClosed(); closed == c.stay {
				t.Fatalf("the connection is closed: %t", closed)
			}
			if !c.stay {
				return
			}
			switch all := <-answered; {
			case c.lost && len(all) == 1 && all[0].Kind == core.Accepted && all[0].Tag == 7: // it was asked again
			case c.lost || len(all) != 0:
				t.Errorf("it is told %+v", all)
			}
			w.fail(false, 0) // the lease that has ended is nowhere kept
			w.link(a)
			if worker.isClosed() {
				t.Error("the connection is closed by the next leader")
			}
			if len(ops) == 1 {
				return
			}
			core.DoOnce(a, core.Internal, &core.Submit{Tag: 1, Job: &core.Job{Queue: "next", Origin: core.Gearman}})
			if got := worker.next(); got[0].Kind != core.Assigned || got[0].Tag != 8 {
				t.Errorf("its lease gets %+v", got)
			}
		})
	}
}
