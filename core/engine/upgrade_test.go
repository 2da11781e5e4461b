package engine

import (
	"fmt"
	"testing"

	"broker/core"
	"broker/core/coretest"
	"broker/core/internal/store/storetest"
)

// TestStoreOfEveryFormatIsServed starts on stores that older brokers left behind (store/testdata/format*.txt lists
// them), at the time of their last write: every job is there, and the index is consistent. The numbers are those that
// the older broker showed.
func TestStoreOfEveryFormatIsServed(t *testing.T) {
	t.Parallel()
	for format, c := range map[int]struct {
		lastWrite core.Instant
		jobs      map[core.State]int
	}{
		1: {1795330585_000000, map[core.State]int{
			core.Scheduled: 6, core.Blocked: 10, core.Ready: 210, core.Leased: 9, core.Retrying: 6, core.Done: 48,
			core.Dead: 2,
		}},
		2: {1795355795_000000, map[core.State]int{
			core.Scheduled: 20, core.Ready: 294, core.Leased: 12, core.Retrying: 12, core.Done: 10, core.Dead: 8,
		}},
	} {
		t.Run(fmt.Sprint("format ", format), func(t *testing.T) {
			t.Parallel()
			disk := coretest.MemoryFS()
			if err := storetest.Unpack(disk, "/data",
				fmt.Sprintf("../internal/store/testdata/format%d.tar.gz", format)); err != nil {
				t.Fatal(err)
			}
			clock := coretest.NewClock()
			clock.Advance(c.lastWrite.Sub(clock.Now()))
			for range 2 {
				serveJobs(t, Options{Dir: "/data", FS: disk, Clock: clock, ManualTimers: true}, c.jobs)
			}
		})
	}
}

// serveJobs opens a store and compares its jobs by state.
func serveJobs(t *testing.T, o Options, want map[core.State]int) {
	t.Helper()
	e, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
	for _, s := range core.States {
		if got := e.machine.Stats().Jobs[s]; got != want[s] {
			t.Errorf("%d jobs are %v instead of %d", got, s, want[s])
		}
	}
	if err := e.Shutdown(); err != nil {
		t.Fatal(err)
	}
}
