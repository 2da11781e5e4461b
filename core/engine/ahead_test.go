package engine

import (
	"fmt"
	"runtime"
	"testing"

	"broker/core"
	"broker/core/coretest"
	"broker/core/notify"
)

// TestLongQueuesAreReadAhead empties queues of which nothing is in memory.
func TestLongQueuesAreReadAhead(t *testing.T) {
	t.Parallel()
	const jobs = 1000
	for _, queues := range []int{1, 5} {
		fs := coretest.MemoryFS()
		open := func() (*Engine, core.ClientID, notify.Signal) {
			e, err := Open(Options{
				Dir: "data", FS: fs, Clock: coretest.NewClock(), Seed: 1, ManualTimers: true, ManualCommits: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			woken := notify.NewSignal()
			return e, e.Open(core.ClientOptions{Protocol: core.Workq, Wake: woken.Set}), woken
		}
		queue := func(n int) string { return fmt.Sprint("q", n%queues) }
		e, client, _ := open()
		for n := range jobs {
			e.Do(client, []core.Op{&core.Submit{Job: &core.Job{
				Queue: queue(n), Body: fmt.Append(nil, n), Origin: core.Workq,
			}}}, nil)
		}
		e.Flush()
		if err := e.Shutdown(); err != nil {
			t.Fatal(err)
		}
		e, client, woken := open()
		waited := 0
		for n := range jobs {
			got := e.Do(client, []core.Op{&core.Lease{
				Queues: []string{queue(n)}, Holder: core.HeldByNobody, Late: true,
			}}, nil)
			if got[0].Kind == core.Reading {
				for waited, got = waited+1, nil; len(got) == 0; {
					<-woken
					got = e.Do(client, nil, nil)
				}
				for e.readers.busy() { // otherwise the next lease may be sooner
					runtime.Gosched()
				}
			}
			if r := got[0]; r.Kind != core.Assigned || string(r.Job.Body) != fmt.Sprint(n) || r.Job.Queue != queue(n) {
				t.Fatalf("lease %d: %+v with %+v", n, r, r.Job)
			}
		}
		if waited == 0 || waited > jobs/50 {
			t.Errorf("%d queues: %d of %d leases waited for the store", queues, waited, jobs)
		}
		if err := e.Check(); err != nil {
			t.Error(err)
		}
		if err := e.Shutdown(); err != nil {
			t.Error(err)
		}
	}
}

func (q *readers) busy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.running > 0
}

func TestReadAheadFollowsRunsOfReads(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reads []uint64
		want  []bool
	}{
		"one queue":                {[]uint64{1, 2, 67, 132}, []bool{false, true, true, true}},
		"with gaps":                {[]uint64{10, 70, 150}, []bool{false, true, true}},
		"far apart":                {[]uint64{10, 1000, 2000}, []bool{false, false, false}},
		"backwards":                {[]uint64{1000, 999, 998}, []bool{false, false, false}},
		"two queues":               {[]uint64{10, 5000, 11, 5001}, []bool{false, false, true, true}},
		"read while it comes":      {[]uint64{1, 2, 3, 4}, []bool{false, true, false, false}},
		"the run that is oldest":   {[]uint64{1, 1e3, 2e3, 3e3, 4e3, 5e3, 6e3, 7e3, 8e3, 2}, make([]bool, 10)},
		"the run that is youngest": {[]uint64{1, 1e3, 2e3, 8001, 8002}, []bool{false, false, false, false, true}},
	} {
		var a readAhead
		for k, seq := range c.reads {
			if got := a.follow(seq); got != c.want[k] {
				t.Errorf("%s: read %d of %v goes on with a run: %v", name, k, c.reads, got)
			}
		}
	}
}
