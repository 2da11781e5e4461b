package machine_test

import (
	"runtime"
	"testing"

	"broker/core"
	"broker/core/internal/machine"
)

// waitingBytes is the maximum memory of the index for a waiting job whose payload is only on disk.
const waitingBytes = 172

func TestWaitingJobsTakeLittleMemory(t *testing.T) {
	const jobs, batch = 300_000, 1000
	m := machine.New(machine.Options{Persist: true, Await: true, StartedAt: 1 << 50})
	c := m.OpenClient(1<<50, core.ClientOptions{Protocol: core.Gearman})
	var sealed machine.Sealed
	var replies []core.Reply
	ops := make([]core.Op, batch)
	submit := func() {
		for i := range ops {
			ops[i] = &core.Submit{Job: &core.Job{Queue: "q", Origin: core.Gearman}}
		}
		m.Apply(1<<50, c, ops)
		replies = m.Take(c, replies[:0])
		m.Seal(&sealed)
		m.Committed(&sealed)
	}
	heap := func() uint64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	submit()
	before := heap()
	for range jobs / batch {
		submit()
	}
	got := float64(heap()-before) / jobs
	t.Logf("%.1f bytes a waiting job", got)
	if got > waitingBytes {
		t.Errorf("a waiting job takes %.1f bytes, at most %d", got, waitingBytes)
	}
	runtime.KeepAlive(m)
}
