package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/store/integrity"
)

// patience is how long a call may take before it counts as stuck. Calls that are not stuck end much earlier.
const patience = 60 * time.Second

// soon calls fn and fails the test if fn does not return.
func soon(t *testing.T, what string, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s is stuck", what)
	}
}

// failedRun is the result of a script on a disk that fails.
type failedRun struct {
	ops          int // operations on the disk
	opened       bool
	acknowledged int
	started      int
	err          error // of Open, or of the first commit that failed
}

// runFailing runs a script of n commits; fails returns the error of each write operation, by its number.
func runFailing(t *testing.T, disk *testDisk, seed uint64, n int, fails func(op int) error) (r failedRun) {
	t.Helper()
	var ops atomic.Int64
	disk.hook(func(op diskOp) error {
		if !op.write || op.verb == "remove" {
			return nil
		}
		return fails(int(ops.Add(1)))
	})
	defer func() {
		disk.hook(nil)
		r.ops = int(ops.Load())
	}()
	var s *Store
	soon(t, "open", func() { s, r.err = Open(small(disk)) })
	if r.err != nil {
		return r
	}
	r.opened = true
	m := model{}
	for i := 1; i <= n && r.err == nil; i++ {
		b := m.step(seed, i)
		r.started = i
		soon(t, "commit", func() { r.err = s.Commit(b) })
		if r.err == nil {
			r.acknowledged = i
		}
	}
	if r.err != nil {
		wantFailed(t, s, r, seed)
	}
	soon(t, "close", func() { _ = s.Close() }) // may be what fails
	return r
}

// wantFailed checks a store that has failed.
func wantFailed(t *testing.T, s *Store, r failedRun, seed uint64) {
	t.Helper()
	if !errors.Is(r.err, core.ErrStopped) || !errors.Is(r.err, errInjected) ||
		!strings.Contains(r.err.Error(), testDir) {
		t.Errorf("commit: %v", r.err)
	}
	select {
	case <-s.Failed():
	default:
		t.Error("failed, and nobody is told")
	}
	soon(t, "second commit", func() {
		if err := s.Commit(&record.CommitBatch{Meta: []core.MetaEntry{{Name: "x", Value: []byte("y")}}}); !errors.Is(
			err, r.err) {
			t.Errorf("second commit: %v after %v", err, r.err)
		}
	})
	if _, err := s.Meta("x"); !errors.Is(err, ErrMissing) {
		t.Errorf("refused mark: %v", err)
	}
	soon(t, "read", func() {
		// The commit under way may become visible while we look, once.
		var err error
		for range 2 {
			n, errRead := commits(s)
			if errRead != nil || n != r.acknowledged && n != r.started {
				t.Errorf("reads show commit %d of %d, %v", n, r.acknowledged, errRead)
			}
			if err = after(seed, n).same(s); err == nil {
				return
			}
		}
		t.Errorf("reads after the failure: %v", err)
	})
	soon(t, "the rest", func() {
		if err := s.Checkpoint("/copy"); !errors.Is(err, core.ErrStopped) {
			t.Errorf("copy: %v", err)
		}
		_ = s.Metrics()
		if _, err := s.Check(context.Background(), nil); err != nil {
			t.Errorf("check: %v", err)
		}
	})
}

// wantRecovered opens the store once the disk works again, and expects every acknowledged commit.
func (r failedRun) wantRecovered(t *testing.T, disk *testDisk, seed uint64, what string) {
	t.Helper()
	s, err := Open(small(disk))
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer mustClose(t, s)
	n, err := commits(s)
	if err != nil || n < r.acknowledged || n > r.started {
		t.Fatalf("%s: %d commits, acknowledged %d, started %d, %v", what, n, r.acknowledged, r.started, err)
	}
	if err := after(seed, n).same(s); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func TestEveryFailedWriteIsFinalAndHarmless(t *testing.T) {
	t.Parallel()
	const seed, n = 5, 60
	ops := runFailing(t, newDisk(), seed, n, func(int) error { return nil }).ops
	for name, fails := range map[string]func(op, at int) error{
		"once": func(op, at int) error {
			if op == at {
				return fmt.Errorf("%w: %w", errInjected, syscall.EIO)
			}
			return nil
		},
		"from then on": func(op, at int) error {
			if op >= at {
				return fmt.Errorf("%w: %w", errInjected, syscall.ENOSPC)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failed := 0
			for at := 1; at <= ops; at += 1 + at/12 {
				disk := newDisk()
				r := runFailing(t, disk, seed, n, func(op int) error { return fails(op, at) })
				if r.err != nil {
					failed++
				}
				r.wantRecovered(t, disk, seed, fmt.Sprintf("failed operation %d of %d: %v", at, ops, r.err))
				// The same again, but the machine goes down with it.
				r.wantRecovered(t, disk.crash(uint64(at), 50), seed, fmt.Sprintf("crash after failed operation %d", at))
			}
			if failed < 12 {
				t.Errorf("only %d runs failed", failed)
			}
		})
	}
}

func TestFailedRecoveryIsAnErrorOfOpen(t *testing.T) {
	t.Parallel()
	const seed, n = 6, 40
	disk := newDisk()
	r := runFailing(t, disk, seed, n, func(int) error { return nil })
	dirty := disk.crash(1, 100) // as after a kill
	ops := runFailing(t, dirty.crash(1, 100), seed, 0, func(int) error { return nil }).ops
	for at := 1; at <= ops; at++ {
		broken := dirty.crash(1, 100)
		got := runFailing(t, broken, seed, 0, func(op int) error {
			if op == at {
				return errInjected
			}
			return nil
		})
		if got.opened || !errors.Is(got.err, errInjected) {
			continue // Close failed, or nothing depends on it
		}
		r.wantRecovered(t, broken, seed, fmt.Sprintf("recovery failed at operation %d of %d: %v", at, ops, got.err))
	}
}

func TestDamageFoundByACompactionStopsCommits(t *testing.T) {
	t.Parallel()
	disk := newDisk()
	s := mustOpen(t, disk)
	var warned atomic.Int64
	s.warn = func(string) { warned.Add(1) }
	m, i := model{}, 0
	commit := func() error {
		i++
		return s.Commit(m.step(7, i))
	}
	for len(disk.files(t, integrity.TableSuffix)) == 0 {
		if err := commit(); err != nil {
			t.Fatal(err)
		}
	}
	disk.hook(func(op diskOp) error {
		if op.verb == "read" && strings.HasSuffix(op.name, integrity.TableSuffix) {
			return errInjected
		}
		return nil
	})
	for range 5000 { // until enough tables are there to be merged
		var err error
		soon(t, "commit", func() { err = commit() })
		if err == nil {
			continue
		}
		if !errors.Is(err, errInjected) || !errors.Is(err, core.ErrStopped) {
			t.Error(err)
		}
		soon(t, "close", func() { _ = s.Close() })
		return
	}
	t.Error("tables that can't be read were never noticed")
}

func TestPanicInPebbleStopsCommitsOnly(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newDisk())
	err := s.latch.Run("test", func() error { panic("broken invariant") })
	if !errors.Is(err, core.ErrStopped) {
		t.Error(err)
	}
	if err := s.Commit(&record.CommitBatch{Meta: []core.MetaEntry{{Name: "x", Value: []byte("y")}}}); !errors.Is(err,
		core.ErrStopped) ||
		!strings.Contains(err.Error(), "broken invariant") {
		t.Error(err)
	}
	_ = s.Close()
}

func TestFatalLogLineStopsCommitsOnly(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newDisk())
	err := s.latch.Run("test", func() error {
		pebbleLog{s}.Fatalf("impossible %d", 7)
		return nil
	})
	if !errors.Is(err, core.ErrStopped) || !strings.Contains(err.Error(), "impossible 7") {
		t.Error(err)
	}
	if !errors.Is(s.Err(), core.ErrStopped) {
		t.Error(s.Err())
	}
	_ = s.Close()
}

func TestFailedCopyConcernsTheCopyOnly(t *testing.T) {
	t.Parallel()
	disk := newDisk()
	s := mustOpen(t, disk)
	m := model{}
	for i := 1; i <= 40; i++ {
		if err := s.Commit(m.step(8, i)); err != nil {
			t.Fatal(err)
		}
	}
	disk.hook(func(op diskOp) error {
		if strings.HasPrefix(op.name, "/copy") && op.write {
			return syscall.ENOSPC
		}
		return nil
	})
	if err := s.Checkpoint("/copy/1"); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	disk.hook(nil)
	if err := s.Checkpoint(testDir + "/copy"); err == nil {
		t.Error("copied into itself")
	}
	if err := s.Checkpoint("/copy/2"); err != nil {
		t.Fatal(err)
	}
	if err := s.Checkpoint("/copy/2"); err == nil {
		t.Error("copied over a copy")
	}
	if err := s.Commit(m.step(8, 41)); err != nil {
		t.Fatal(err)
	}
	c, err := Open(Options{Dir: "/copy/2", FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, c)
	if err := after(8, 40).same(c); err != nil {
		t.Error(err)
	}
}

func TestFreeBytes(t *testing.T) {
	t.Parallel()
	disk := newDisk()
	s := mustOpen(t, disk)
	if _, err := s.FreeBytes(); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 7, TotalBytes: 9, UsedBytes: 1})
	if n, err := s.FreeBytes(); n != 7 || err != nil {
		t.Error(n, err)
	}
}
