package engine

import (
	"testing"

	"broker/core"
	"broker/core/coretest"
	"broker/core/internal/store/storetest"
)

// TestStoreOfFormat1IsServed starts on a store that an older broker left behind (store/testdata/format1.txt lists it), at
// the time of its last write: every job is there, and the index is consistent.
func TestStoreOfFormat1IsServed(t *testing.T) {
	t.Parallel()
	const lastWrite = core.Instant(1795330585_000000)
	disk := MemoryFS()
	if err := storetest.Unpack(disk, "/data", "../internal/store/testdata/format1.tar.gz"); err != nil {
		t.Fatal(err)
	}
	clock := coretest.NewClock()
	clock.Advance(lastWrite.Sub(clock.Now()))
	for range 2 {
		e, err := Open(Options{Dir: "/data", FS: disk, Clock: clock, ManualTimers: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Check(); err != nil {
			t.Error(err)
		}
		got := map[core.State]int{}
		for _, s := range core.States {
			got[s] = e.machine.Stats().Jobs[s]
		}
		for s, want := range map[core.State]int{
			core.Scheduled: 6, core.Blocked: 10, core.Ready: 210, core.Leased: 9, core.Retrying: 6, core.Done: 48, core.Dead: 2,
		} {
			if got[s] != want {
				t.Errorf("%d jobs are %v instead of %d", got[s], s, want)
			}
		}
		if err := e.Shutdown(); err != nil {
			t.Fatal(err)
		}
	}
}
