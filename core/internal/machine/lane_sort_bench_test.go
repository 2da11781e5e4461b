package machine

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"broker/core"
)

// BenchmarkLimitOfAMillionJobs limits the types of a queue with a million jobs, beside a thousand jobs of others. It
// reports the processor time under the lock: of the longest step, of a step on average, and of all steps.
func BenchmarkLimitOfAMillionJobs(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range b.N {
		m := New(Options{Random: rand.New(rand.NewPCG(1, 1)), StartedAt: 1})
		c := m.OpenClient(0, core.ClientOptions{Protocol: core.Internal})
		for i := range 1_000_000 {
			m.Apply(1, c, []core.Op{&core.Submit{Job: &core.Job{Queue: "q", Type: fmt.Sprint("type ", i%1000)}}})
			m.Take(c, nil)
		}
		var longest, all time.Duration
		now := core.Instant(1)
		step := func(do func()) {
			start := threadTime()
			do()
			d := threadTime() - start
			longest, all = max(longest, d), all+d
		}
		steps := 1
		step(func() {
			m.Apply(now, c, []core.Op{&core.PutLimit{Limit: core.Limit{
				Selector: core.InQueue("q", core.ScopeType, ""), Throttle: core.Throttle{Leased: 5},
			}}})
		})
		for ; m.queues[m.table.QueueNumber("q")].Sorting; steps++ {
			now = m.NextDeadline()
			step(func() { m.Tick(now, 512) })
		}
		b.ReportMetric(float64(longest.Microseconds()), "longest-µs")
		b.ReportMetric(float64(all.Microseconds())/float64(steps), "mean-µs")
		b.ReportMetric(float64(all.Milliseconds()), "all-ms")
	}
}

// threadTime is the processor time of this thread, which other programs on the machine do not change.
func threadTime() time.Duration {
	const threadClock = 3 // CLOCK_THREAD_CPUTIME_ID; getrusage counts in ticks of 4 ms
	var now syscall.Timespec
	_, _, _ = syscall.Syscall(syscall.SYS_CLOCK_GETTIME, threadClock, uintptr(unsafe.Pointer(&now)), 0)
	return time.Duration(now.Nano())
}
