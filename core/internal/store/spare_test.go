package store

import (
	"strings"
	"sync/atomic"
	"testing"

	"broker/core/internal/record"
	"broker/core/internal/store/integrity"
	"broker/core/internal/store/sparelog"
)

// wantSpare waits until a spare log is ready and returns its path.
func wantSpare(t *testing.T, s *Store, d *testDisk) string {
	t.Helper()
	if err := s.spares.Prepare(s.stopSpares()); err != nil {
		t.Fatal(err)
	}
	return d.PathJoin(testDir, sparelog.File)
}

// Every log of a store but its very first is a file that was filled before.
func TestLogsArePreparedAhead(t *testing.T) {
	t.Parallel()
	disk := newDisk()
	var created, reused atomic.Int64
	disk.hook(func(op diskOp) error {
		if strings.HasSuffix(op.name, integrity.LogSuffix) {
			switch op.verb {
			case "create":
				created.Add(1)
			case "reuse":
				reused.Add(1)
			}
		}
		return nil
	})
	for i := range uint64(3) {
		s := mustOpen(t, disk)
		wantSpare(t, s, disk)
		log := newest(t, disk)
		if n := len(disk.contents(t, log)); n != minMemTableBytes {
			t.Errorf("start %d: log %s has %d bytes", i, log, n)
		}
		mustCommit(t, s, record.Change{Seq: i + 1, Job: job(i+1, 100)})
		if n := len(disk.contents(t, log)); n != minMemTableBytes {
			t.Errorf("start %d: log %s has %d bytes after a commit", i, log, n)
		}
		mustClose(t, s)
	}
	if created.Load() != 1 || reused.Load() != 3 {
		t.Errorf("%d logs were created, %d spares used", created.Load(), reused.Load())
	}
}

// Pebble tolerates a log that ends without its trailer only if it is the newest. So a log without any record, which holds
// zeros alone, must not survive as an older one when the start after a crash crashes in turn.
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

// A spare that is not complete, or of another size, is replaced; nobody who only looks touches it.
func TestSparesOfOtherSizesAreReplaced(t *testing.T) {
	t.Parallel()
	disk := newDisk()
	s := mustOpen(t, disk)
	spare := wantSpare(t, s, disk)
	mustClose(t, s)
	for _, text := range []string{"", "short", strings.Repeat("x", 2*minMemTableBytes)} {
		writeFile(t, disk, spare, text)
		writeFile(t, disk, spare+".new", text)
		o := small(disk)
		o.ReadOnly = true
		s, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		mustClose(t, s)
		if got := string(disk.contents(t, spare)); got != text {
			t.Errorf("an inspection changed the spare to %d bytes", len(got))
		}
		s = mustOpen(t, disk)
		wantSpare(t, s, disk)
		if got := disk.contents(t, spare); strings.Trim(string(got), "\x00") != "" || len(got) != minMemTableBytes {
			t.Errorf("spare of %d bytes", len(got))
		}
		mustClose(t, s)
	}
}

// Without a spare the store is slower, and that is all.
func TestSpareThatCannotBeWrittenIsNoFailure(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"create", "write", "sync", "rename"} {
		disk := newDisk()
		disk.hook(func(op diskOp) error {
			if strings.Contains(op.name, sparelog.File) && op.verb == verb {
				return errInjected
			}
			return nil
		})
		mustClose(t, mustOpen(t, disk))
		s := mustOpen(t, disk)
		mustPlay(t, s, 23, 0, 40)
		if err := after(23, 40).same(s); err != nil {
			t.Error(err)
		}
		mustClose(t, s)
	}
}
