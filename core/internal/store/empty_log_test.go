package store

import (
	"testing"

	"broker/core/internal/record"
	"broker/core/internal/store/integrity"
)

// Pebble tolerates a log without a trailer only if it is the newest. So a log without any record must not remain as an older log when the
// start after a crash crashes again.
func TestCrashesBeforeTheFirstRecordOfALog(t *testing.T) {
	t.Parallel()
	disk := newDisk()
	s := mustOpen(t, disk)
	mustCommit(t, s, record.Change{Seq: 1, Job: job(1, 100)})
	crashed := disk.crash(1, 0)
	mustClose(t, s)
	s = mustOpen(t, crashed) // and no commit
	empty := crashed.crash(2, 0)
	mustClose(t, s)
	if log := newest(t, empty); logBytes(t, empty, log) > 0 {
		t.Fatalf("log %s has a record", log)
	}
	var left []*testDisk
	twoLogs := 0
	empty.hook(func(op diskOp) error {
		if op.write {
			empty.mu.Lock()
			defer empty.mu.Unlock()
			left = append(left, empty.crash(uint64(len(left)), 50*(len(left)%3)))
		}
		return nil
	})
	s, err := Open(small(empty))
	if err != nil {
		t.Fatal(err)
	}
	empty.hook(nil)
	mustClose(t, s)
	for _, disk := range left {
		if len(disk.files(t, integrity.LogSuffix)) > 1 {
			twoLogs++
		}
		s := mustOpen(t, disk)
		if _, err := s.Job(1); err != nil {
			t.Fatal(err)
		}
		mustClose(t, s)
	}
	if twoLogs == 0 {
		t.Error("no crash left two logs")
	}
}
