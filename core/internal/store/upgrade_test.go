package store

import (
	"context"
	"os"
	"strings"
	"testing"

	"broker/core/internal/record"
	"broker/core/internal/store/integrity"
)

// wantFormat1 compares what s holds with what a broker of format 1 left.
func wantFormat1(t *testing.T, s *Store) {
	t.Helper()
	want, err := os.ReadFile("testdata/format1.txt")
	if err != nil {
		t.Fatal(err)
	}
	wantSameLines(t, dumpStore(t, s), string(want))
	if r := check(t, s); len(r.Damage)+len(r.Orphans) > 0 {
		t.Error(r.Damage, r.Orphans)
	}
}

// wantUpgraded fails if an older broker would still open the store.
func wantUpgraded(t *testing.T, disk *testDisk, s *Store) {
	t.Helper()
	if v, err := s.get([]byte{spaceVersion}); err != nil || v[0] != integrity.BaseFormat {
		t.Errorf("version %d, %v", v, err)
	}
	text := string(disk.contents(t, disk.PathJoin(testDir, integrity.FormatFile)))
	if text != "broker store, format 2\n" {
		t.Errorf("FORMAT says %q", text)
	}
}

// TestCrashDuringUpgradeLosesNoJob crashes before every write of the upgrade.
func TestCrashDuringUpgradeLosesNoJob(t *testing.T) {
	t.Parallel()
	disk := format1Store(t)
	var left []*testDisk
	disk.hook(func(op diskOp) error {
		if op.write {
			disk.mu.Lock()
			defer disk.mu.Unlock()
			left = append(left, disk.crash(uint64(len(left)), 50*(len(left)%2)))
		}
		return nil
	})
	s, err := Open(small(disk))
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	disk.hook(nil)
	formats := map[bool]int{}
	for _, d := range left {
		text := string(d.contents(t, d.PathJoin(testDir, integrity.FormatFile)))
		formats[strings.Contains(text, "format 2")]++
		s := mustOpen(t, d)
		wantUpgraded(t, d, s)
		wantFormat1(t, s)
		mustClose(t, s)
	}
	if formats[true] == 0 || formats[false] == 0 {
		t.Errorf("%d crashes before FORMAT was written, %d after", formats[false], formats[true])
	}
}

// TestInspectionDoesNotUpgrade: inspecting a store must not lock out the older broker that owns it.
func TestInspectionDoesNotUpgrade(t *testing.T) {
	t.Parallel()
	disk := format1Store(t)
	s, err := Open(Options{Dir: testDir, FS: disk, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	wantFormat1(t, s)
	mustClose(t, s)
	text := string(disk.contents(t, disk.PathJoin(testDir, integrity.FormatFile)))
	if text != "broker store, format 1\n" {
		t.Errorf("FORMAT says %q", text)
	}
}

// TestJobsOfFormat1CanBeRewrittenAndRemoved: no value that the older broker wrote comes back, in whichever table it
// is.
func TestJobsOfFormat1CanBeRewrittenAndRemoved(t *testing.T) {
	t.Parallel()
	disk := format1Store(t)
	s := mustOpen(t, disk)
	gone := map[uint64]bool{}
	for i := range 3 { // every job is rewritten three times, every other one removed then
		var changes []record.Change
		err := s.Scan(context.Background(), nil, func(r *record.Record) error {
			j, err := s.Job(r.Job.Seq)
			if err != nil {
				return err
			}
			j.Priority++
			ch := record.Change{
				Seq: j.Seq, Stored: r.Stored | record.Rewritten, BodyBytes: r.BodyBytes, Job: j, KeepBody: true,
			}
			changes = append(changes, ch)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		mustCommit(t, s, changes...)
		if i == 0 {
			mustClose(t, s)
			s = mustOpen(t, disk)
		}
	}
	var changes []record.Change
	err := s.Scan(context.Background(), nil, func(r *record.Record) error {
		if r.Stored&record.Rewritten == 0 {
			t.Errorf("job %d: the store forgot that it was rewritten", r.Job.Seq)
		}
		if r.Job.Seq%2 == 0 {
			changes = append(changes,
				record.Change{Seq: r.Job.Seq, Gone: true, Stored: r.Stored, BodyBytes: r.BodyBytes})
			gone[r.Job.Seq] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	mustCommit(t, s, changes...)
	for range 2 {
		if err := s.Reclaim(context.Background()); err != nil {
			t.Fatal(err)
		}
		err := s.Scan(context.Background(), nil, func(r *record.Record) error {
			if gone[r.Job.Seq] {
				t.Errorf("job %d is back", r.Job.Seq)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if r := check(t, s); len(r.Damage)+len(r.Orphans) > 0 {
			t.Error(r.Damage, r.Orphans)
		}
		mustClose(t, s)
		s = mustOpen(t, disk)
	}
}
