package store

import (
	"testing"

	"broker/core/internal/record"
	"broker/core/internal/store/integrity"
)

// Pebble tolerates a log without a trailer only if it is the newest. So a log without any record must not remain as an
// older log when the start after a crash crashes again. Whether a crash meets both logs depends on Pebble's goroutines,
// so the history is repeated until one does.
func TestCrashesBeforeTheFirstRecordOfALog(t *testing.T) {
	t.Parallel()
	const attempts = 200
	for range attempts {
		if crashWhileAnEmptyLogIsReplaced(t) {
			return
		}
	}
	t.Errorf("in %d attempts no crash left two logs", attempts)
}

// crashWhileAnEmptyLogIsReplaced opens a store whose newest log is empty, crashes it at each write and opens what every
// crash left. It reports whether a crash left two logs.
func crashWhileAnEmptyLogIsReplaced(t *testing.T) (twoLogs bool) {
	t.Helper()
	disk := newDisk()
	s := mustOpen(t, disk)
	mustCommit(t, s, record.Change{Seq: 1, Job: job(1, 100)})
	crashed := disk.crash(1, 0)
	mustClose(t, s)
	s = mustOpen(t, crashed) // and no commit
	empty := crashed.crash(2, 0)
	mustClose(t, s)
	if logBytes(t, empty, newest(t, empty)) > 0 {
		return false // the crash came before the new log's name was durable
	}
	var left []*testDisk
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
		twoLogs = twoLogs || len(disk.files(t, integrity.LogSuffix)) > 1
		s := mustOpen(t, disk)
		if _, err := s.Job(1); err != nil {
			t.Fatal(err)
		}
		mustClose(t, s)
	}
	return twoLogs
}
