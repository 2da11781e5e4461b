package remote

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"broker/core"
	"broker/core/clock"
	"broker/core/engine"
)

// BenchmarkJobLife is the submission, the lease and the completion of jobs by clients of a node that follows, each with
// a job at a time, as many Gearman workers are. It reports the processor time of both sides for each job.
func BenchmarkJobLife(b *testing.B) {
	for name, durability := range map[string]engine.Durability{"sync": engine.Sync, "none": engine.None} {
		b.Run(name, func(b *testing.B) { benchmarkJobLife(b, durability) })
	}
}

func benchmarkJobLife(b *testing.B, durability engine.Durability) {
	b.Helper()
	e, err := engine.Open(engine.Options{Dir: b.TempDir(), Durability: durability})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = e.Shutdown() }() // the directory goes with the benchmark
	s := NewServer(e, ServerOptions{Owner: noOwner{}, Term: 1})
	s.Settle(canceled(), nil, e.Settle)
	defer s.Close(canceled())
	node := NewBroker(BrokerOptions{Node: "n2", Clock: clock.System{}, Told: func([]byte) {}})
	defer node.Shut()
	near, far := loopback(b)
	go func() { _ = s.Serve(far) }() // ends with the link
	up, err := node.Dial(near)
	if err != nil {
		b.Fatal(err)
	}
	<-up.Ready()

	const clients = 64
	jobs := int64(b.N)
	b.ReportAllocs()
	b.ResetTimer()
	began := processorTime(b)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			id := node.Open(core.ClientOptions{Protocol: core.Gearman, Wake: func() {}})
			node.Do(id, []core.Op{&core.Register{Queue: "q"}}, nil)
			body, tag := make([]byte, 256), uint64(1)
			lease := &core.Lease{Pick: core.PickByPriority, Tag: 1}
			ops := []core.Op{nil, lease}
			var replies []core.Reply
			for atomic.AddInt64(&jobs, -1) >= 0 {
				ops[0] = &core.Submit{
					Tag: tag + 1, Job: &core.Job{Queue: "q", Body: append([]byte(nil), body...), Origin: core.Gearman},
				}
				lease.Tag, tag = tag+2, tag+3
				replies = node.Do(id, ops, replies[:0])
				done := &core.Complete{Tag: tag}
				for i := range replies {
					if replies[i].Kind == core.Assigned {
						done.Ref.Seq = replies[i].Seq
					}
				}
				if replies = node.Do(id, []core.Op{done}, replies[:0]); len(replies) != 1 || replies[0].Err != nil {
					b.Errorf("the completion was answered with %+v", replies)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(processorTime(b)-began)/float64(b.N)/1e3, "cpu-µs/op")
}

// noOwner hears nothing.
type noOwner struct{}

func (noOwner) Asked(_ *Node, _ []byte, answer func([]byte)) { answer(nil) }
func (noOwner) Told(*Node, []byte)                           {}
func (noOwner) Left(*Node)                                   {}

// loopback is a connection through the kernel.
func loopback(b *testing.B) (near, far net.Conn) {
	b.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = ln.Close() }() // the two connections are open
	if near, err = net.Dial("tcp", ln.Addr().String()); err == nil {
		far, err = ln.Accept()
	}
	if err != nil {
		b.Fatal(err)
	}
	return near, far
}

// processorTime is the processor time that this process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
