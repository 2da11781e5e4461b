package store

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core/internal/record"
	"broker/core/internal/record/recordtest"
	"broker/core/internal/store/integrity"
)

// used is a disk with the store after n commits of a script: tables, and newer commits in the log.
func used(t *testing.T, seed uint64, n int) *testDisk {
	t.Helper()
	disk := newDisk()
	s := mustOpen(t, disk)
	mustPlay(t, s, seed, 0, n)
	mustClose(t, s)
	return disk
}

// mustPlay makes the commits of a script from the one after from up to to.
func mustPlay(t *testing.T, s *Store, seed uint64, from, to int) {
	t.Helper()
	m := maps.Clone(after(seed, from))
	for i := from + 1; i <= to; i++ {
		if err := s.Commit(m.step(seed, i)); err != nil {
			t.Fatal(err)
		}
	}
}

// readAll opens the store and reads everything in it.
func readAll(disk *testDisk, seed uint64) (n int, err error) {
	s, err := Open(small(disk))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if n, err = commits(s); err != nil {
		return 0, err
	}
	return n, after(seed, n).same(s)
}

func wantDamage(t *testing.T, err error, path string) {
	t.Helper()
	var d *DamageError
	if !errors.As(err, &d) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "backup") {
		t.Errorf("want damage of %s, got: %v", path, err)
	}
	if strings.Contains(err.Error(), " NEW-FOLDER ") {
		t.Errorf("the message names no complete command: %v", err)
	}
}

func TestMissingFilesAreNamed(t *testing.T) {
	t.Parallel()
	const seed = 11
	whole := used(t, seed, 60)
	names, err := whole.List(testDir)
	if err != nil {
		t.Fatal(err)
	}
	manifests, logs := 0, 0
	for _, name := range names {
		disk := whole.crash(1, 100)
		if err := disk.MemFS.Remove(disk.PathJoin(testDir, name)); err != nil {
			t.Fatal(err)
		}
		n, err := readAll(disk, seed)
		switch {
		case strings.HasPrefix(name, integrity.ManifestMarker):
			wantDamage(t, err, integrity.ManifestMarker)
		case strings.HasSuffix(name, integrity.TableSuffix), name == integrity.GuardFile:
			wantDamage(t, err, name)
		case strings.HasPrefix(name, integrity.ManifestPrefix) && err != nil:
			wantDamage(t, err, name)
			manifests++
		case strings.HasSuffix(name, integrity.LogSuffix) && err != nil:
			wantDamage(t, err, name)
			logs++
		case err == nil && n != 60:
			t.Errorf("without %s the store has %d commits", name, n)
		}
	}
	if manifests != 1 || logs == 0 { // tables may still be written from some logs at the end
		t.Errorf("%d manifests and %d logs were missed", manifests, logs)
	}
}

// Several logs are needed while tables are written from the older ones; other logs are only kept for reuse.
func TestMissingAndShortLogsAreNamed(t *testing.T) {
	t.Parallel()
	const seed = 16
	disk := newDisk()
	s := mustOpen(t, disk)
	n := 0
	grow := func(logs int32) (write func()) { // commits until there are more logs, of which no tables are written
		slow := make(chan struct{})
		var made atomic.Int32
		disk.hook(func(op diskOp) error {
			switch {
			case op.verb == "create" && strings.HasSuffix(op.name, integrity.TableSuffix):
				<-slow
			case strings.HasSuffix(op.name, integrity.LogSuffix) && (op.verb == "create" || op.verb == "reuse"):
				made.Add(1)
			}
			return nil
		})
		for ; made.Load() < logs; n++ {
			mustPlay(t, s, seed, n, n+1)
		}
		return func() { close(slow) }
	}
	grow(3)()
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	write := grow(2) // uses two of the older ones again
	s.fs.WaitGuard() // a log that was made just now need not be known
	killed := disk.crash(1, 0)
	write()
	mustClose(t, s)

	if known := strings.Count(string(killed.contents(t, killed.PathJoin(testDir, integrity.GuardFile))),
		"log "); known > len(killed.files(t, integrity.LogSuffix)) {
		t.Errorf("GUARD has %d logs", known)
	}
	current := newest(t, killed)
	missing, short := 0, 0
	for _, log := range killed.files(t, integrity.LogSuffix) {
		without := killed.crash(1, 100)
		cut := killed.crash(1, 100)
		half := killed.contents(t, log)[:len(killed.contents(t, log))/2]
		writeFile(t, cut, log, string(half))
		if err := without.MemFS.Remove(log); err != nil {
			t.Fatal(err)
		}
		if got, err := readAll(without, seed); err != nil {
			wantDamage(t, err, log)
			missing++
		} else if got != n {
			t.Errorf("without %s the store has %d commits", log, got)
		}
		if got, err := readAll(cut, seed); err != nil {
			wantDamage(t, err, log)
			short++
		} else if got != n && log != current {
			t.Errorf("with half of %s the store has %d commits", log, got)
		}
	}
	if all := len(killed.files(t, integrity.LogSuffix)); missing < 3 || short != missing-1 || all == missing {
		t.Errorf("of %d logs %d were missed and %d too short", all, missing, short)
	}
}

func TestStoreWithOnlyItsFormatFileIsDamaged(t *testing.T) {
	t.Parallel()
	disk := newDisk()
	mustClose(t, mustOpen(t, disk))
	names, err := disk.List(testDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if name != integrity.FormatFile {
			if err := disk.MemFS.Remove(disk.PathJoin(testDir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err = Open(small(disk))
	wantDamage(t, err, integrity.ManifestMarker)
	if !strings.HasSuffix(err.Error(), "broker doctor --salvage "+testDir+"-salvaged "+testDir) {
		t.Errorf("the message names no complete command: %v", err)
	}
}

func TestDamageThatPebbleReportsNamesTheCommand(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newDisk())
	go s.foundDamage( // it never returns to Pebble
		pebble.DataCorruptionInfo{Path: "000007.sst", Details: errors.New("a wrong checksum")})
	for s.Err() == nil {
		runtime.Gosched()
	}
	wantDamage(t, s.Err(), "000007.sst")
}

func TestMissingVersionIsNoticed(t *testing.T) {
	t.Parallel()
	disk := used(t, 12, 3)
	s := mustOpen(t, disk)
	err := s.apply(func(b *pebble.Batch) error { return b.Delete([]byte{spaceVersion}, nil) })
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = Open(small(disk))
	wantDamage(t, err, "*.log")
	if err := disk.MemFS.Remove(disk.PathJoin(testDir, integrity.FormatFile)); err != nil {
		t.Fatal(err)
	}
	_, err = Open(small(disk)) // it still has jobs
	wantDamage(t, err, "*.log")
}

// Damage in the log is distinguished from a torn tail, except in the last commit, which no later commit confirms. A
// completed log has no torn tail.
func TestFlippedBitsInTheLog(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		bodyBytes, jobs, flips int
		closed                 bool
	}{
		// Pebble tries each bit of a damaged block: a second of work for a large one.
		"small commits": {300, 300, 130, false}, "commits larger than a block": {50_000, 20, 40, false},
		"a complete log": {300, 300, 130, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			flipLog(t, c.bodyBytes, c.jobs, c.flips, c.closed)
		})
	}
}

func flipLog(t *testing.T, bodyBytes, jobs, flips int, closed bool) {
	t.Helper()
	whole := newDisk()
	o := small(whole)
	o.MemTableBytes = 8 << 20
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	last := int64(0) // where the last commit begins
	for seq := uint64(1); seq <= uint64(jobs); seq++ {
		if last, err = integrity.SoundLogBytes(whole, newest(t, whole)); err != nil {
			t.Fatal(err)
		}
		mustCommit(t, s, record.Change{Seq: seq, Job: job(seq, bodyBytes)})
	}
	if closed {
		mustClose(t, s)
		if last, err = integrity.SoundLogBytes(whole, newest(t, whole)); err != nil {
			t.Fatal(err)
		}
	} else {
		defer mustClose(t, s)
	}
	killed := whole.crash(1, 0)
	log := newest(t, killed)
	for at := 0; at < len(killed.contents(t, log)); at += len(killed.contents(t, log))/flips | 1 {
		disk := killed.crash(1, 100)
		disk.contents(t, log)[at] ^= 1 << (at % 8)
		s, err := Open(small(disk))
		if int64(at) < last {
			wantDamage(t, err, log)
		}
		if err != nil {
			continue
		}
		found := uint64(0)
		err = s.Scan(context.Background(), nil, func(r *record.Record) error {
			found++
			wantSame(t, r.Job.Seq, found)
			return nil
		})
		if err != nil || found < uint64(jobs)-1 {
			t.Errorf("byte %d of a log whose last commit begins at %d: %d jobs, %v", at, last, found, err)
		}
		mustClose(t, s)
	}
}

// A flipped bit anywhere except in the log causes an error or makes no difference.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	const seed, n = 13, 25
	whole := used(t, seed, n)
	merged := whole.crash(1, 100)
	s := mustOpen(t, merged)
	if err := s.db.Compact(context.Background(), []byte{0}, []byte{0xff}, false); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	t.Run("one table", func(t *testing.T) { flipBits(t, merged, seed, n) }) // with the format version in it
	t.Run("as it was left", func(t *testing.T) { flipBits(t, whole, seed, n) })
}

func flipBits(t *testing.T, whole *testDisk, seed uint64, n int) {
	t.Helper()
	for part, every := range map[string]int{
		integrity.TableSuffix: 113, integrity.ManifestPrefix: 17, integrity.GuardFile: 5, integrity.FormatFile: 1,
	} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			var files []string
			for _, f := range whole.files(t, "") {
				if strings.Contains(f, part) {
					files = append(files, f)
				}
			}
			noticed := 0
			for _, name := range files {
				for at := 0; at < len(whole.contents(t, name)); at += every {
					disk := whole.crash(1, 100)
					disk.contents(t, name)[at] ^= 1 << (at % 8)
					got, err := readAll(disk, seed)
					if err != nil {
						noticed++
						wantDamageOrNewerFormat(t, err, name, at)
					} else if got != n {
						t.Errorf("bit in byte %d of %s: %d commits", at, name, got)
					}
				}
			}
			if noticed == 0 {
				t.Errorf("no flipped bit in any of %d files was noticed", len(files))
			}
		})
	}
}

// wantDamageOrNewerFormat checks the error for a flipped bit: it is damage, or a newer format if the bit is in a
// version.
func wantDamageOrNewerFormat(t *testing.T, err error, name string, at int) {
	t.Helper()
	var d *DamageError
	if !errors.As(err, &d) && !errors.Is(err, record.ErrNewerFormat) {
		t.Errorf("bit in byte %d of %s: %v", at, name, err)
	}
	if strings.HasSuffix(name, integrity.TableSuffix) && !strings.Contains(err.Error(), filepath.Base(name)[:6]) {
		t.Errorf("bit in byte %d of %s is blamed on: %v", at, name, err)
	}
}

// logBytes returns the number of bytes that were written to a log.
func logBytes(t *testing.T, d *testDisk, name string) int {
	t.Helper()
	return len(bytes.TrimRight(d.contents(t, name), "\x00"))
}

// The tail of the log that a crash has torn is cut off, wherever it was torn. A store that was closed has no torn tail.
func TestTornTailIsCut(t *testing.T) {
	t.Parallel()
	const seed, n = 14, 6
	running := newDisk()
	s, err := Open(small(running))
	if err != nil {
		t.Fatal(err)
	}
	mustPlay(t, s, seed, 0, n)
	whole := running.crash(1, 0)
	mustClose(t, s)
	log := newest(t, whole)
	size := logBytes(t, whole, log)
	last := -1
	for cut := size - 1; cut > 0; cut -= 1 + size/80 {
		disk := whole.crash(1, 100)
		left := disk.contents(t, log)
		if clear(left[cut:]); cut%2 == 0 { // a torn tail is missing, or was not overwritten
			left = left[:cut]
		}
		writeFile(t, disk, log, string(left))
		got, err := readAll(disk, seed)
		if got == 0 && err != nil {
			wantDamage(t, err, "*.log") // not even the first commit of all is left
			continue
		}
		if err != nil || got > n || last >= 0 && got > last {
			t.Fatalf("log cut at %d of %d: %d commits, %v", cut, size, got, err)
		}
		last = got
	}
	if last > n/2 {
		t.Errorf("%d commits are left when nearly all of the log is gone", last)
	}
	writeFile(t, running, log, string(running.contents(t, log)[:logBytes(t, running, log)-1]))
	_, err = Open(small(running))
	wantDamage(t, err, log)
}

// newest returns the log that is being written.
func newest(t *testing.T, d *testDisk) string {
	t.Helper()
	best := ""
	for _, name := range d.files(t, integrity.LogSuffix) {
		if len(d.contents(t, name)) > 0 {
			best = max(best, name)
		}
	}
	return best
}

func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newDisk())
	mustCommit(t, s, record.Change{Seq: 1, Job: job(1, 2*record.InlineBytes)},
		record.Change{Seq: 2, Job: job(2, 1), Failure: recordtest.FullFailure()},
		record.Change{Seq: 3, Job: job(3, 2*record.InlineBytes)},
		record.Change{Seq: 4, Job: job(4, 2*record.InlineBytes)})
	var k jobKey
	status, _ := record.AppendStatus(nil, 9, recordtest.FullStatus())
	err := s.apply(func(b *pebble.Batch) error {
		return errors.Join(
			b.Set(k.of(spaceJob, 9, partStatus), status, nil),    // of no job
			b.Set(k.of(spaceBody, 8, partJob), []byte("x"), nil), // of no job
			b.Delete(k.of(spaceBody, 1, partJob), nil),           // wanted
			b.Set(k.of(spaceBody, 3, partJob), []byte("x"), nil), // too short
			b.Set(k.of(spaceJob, 2, partFailure), []byte("noise"), nil),
			b.Set([]byte("j odd key that is too long"), nil, nil),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Check(context.Background(), nil)
	if err != nil || len(r.Orphans) != 2 || len(r.Damage) != 4 || r.Jobs != 4 || r.Bodies != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, what := range []string{"part 's' of job 9", "body of job 8"} {
		if !strings.Contains(strings.Join(r.Orphans, "\n"), what) {
			t.Errorf("%q is not in %q", what, r.Orphans)
		}
	}
	for _, what := range []string{"job 1:", "job 3:", "part 'f' of job 2:", "key 6a"} {
		if !strings.Contains(strings.Join(r.Damage, "\n"), what) {
			t.Errorf("%q is not in %q", what, r.Damage)
		}
	}
}

// On a real disk, closing a lock twice panics.
func TestFailedOpenReleasesTheLockOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func(readOnly bool) (*Store, error) {
		return Open(Options{Dir: dir, FS: vfs.Default, ReadOnly: readOnly, MemTableBytes: 1 << 20})
	}
	s, err := open(false)
	if err != nil {
		t.Fatal(err)
	}
	m := maps.Clone(after(1, 0))
	if err := s.Commit(m.step(1, 1)); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	tables, err := filepath.Glob(filepath.Join(dir, "*"+integrity.TableSuffix))
	if err != nil || len(tables) == 0 {
		t.Fatalf("no tables: %v", err)
	}
	for _, path := range tables {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text[20] ^= 0x10
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, readOnly := range []bool{true, false, true} {
		_, err := open(readOnly)
		wantDamage(t, err, "")
	}
}
