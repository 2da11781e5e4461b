package store

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"broker/core"
)

// used is a disk with the store after n commits of a script: tables, and newer commits in the log.
func used(t *testing.T, seed uint64, n int) *testDisk {
	t.Helper()
	disk := newDisk()
	s := mustOpen(t, disk)
	m := model{}
	for i := 1; i <= n; i++ {
		if err := s.Commit(m.step(seed, i)); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, s)
	return disk
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
}

func TestMissingFilesAreNamed(t *testing.T) {
	t.Parallel()
	const seed = 11
	whole := used(t, seed, 60)
	names, err := whole.List(testDir)
	if err != nil {
		t.Fatal(err)
	}
	missing := 0
	for _, name := range names {
		disk := whole.crash(1, 100)
		if err := disk.MemFS.Remove(disk.PathJoin(testDir, name)); err != nil {
			t.Fatal(err)
		}
		n, err := readAll(disk, seed)
		switch {
		case strings.HasPrefix(name, manifestMarker):
			wantDamage(t, err, manifestMarker)
		case strings.HasSuffix(name, tableSuffix), name == guardFile:
			wantDamage(t, err, name)
		case strings.HasPrefix(name, manifestPrefix) && err != nil, strings.HasSuffix(name, logSuffix) && err != nil:
			wantDamage(t, err, name)
			missing++
		case err == nil && n != 60:
			t.Errorf("without %s the store has %d commits", name, n)
		}
	}
	if missing != 2 {
		t.Errorf("%d of the newest manifest and the newest log were missed", missing)
	}
}

func TestOnlyFormatFileIsLeft(t *testing.T) {
	t.Parallel()
	disk := newDisk()
	mustClose(t, mustOpen(t, disk))
	names, err := disk.List(testDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if name != formatFile {
			if err := disk.MemFS.Remove(disk.PathJoin(testDir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err = Open(small(disk))
	wantDamage(t, err, manifestMarker)
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
	if err := disk.MemFS.Remove(disk.PathJoin(testDir, formatFile)); err != nil {
		t.Fatal(err)
	}
	_, err = Open(small(disk)) // it still has jobs
	wantDamage(t, err, "*.log")
}

// Damage in the log is told from its torn end up to the last blocks, of 32 KiB, which no later one vouches for.
func TestFlippedBitsInTheLog(t *testing.T) {
	t.Parallel()
	const jobs, vouched = 300, 64 << 10
	whole := newDisk()
	o := small(whole)
	o.MemTableBytes = 4 << 20
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, s)
	for seq := uint64(1); seq <= jobs; seq++ {
		mustCommit(t, s, Change{Seq: seq, Job: job(seq, 300)})
	}
	killed := whole.crash(1, 0)
	log := newest(t, killed)
	size := len(killed.contents(t, log))
	for at := 0; at < size; at += 1009 {
		disk := killed.crash(1, 100)
		disk.contents(t, log)[at] ^= 1 << (at % 8)
		s, err := Open(small(disk))
		if at < size-vouched {
			wantDamage(t, err, log)
		}
		if err != nil {
			continue
		}
		found := uint64(0)
		err = s.Scan(context.Background(), nil, func(r *Record) error {
			found++
			wantSame(t, r.Job, job(found, 300))
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		mustClose(t, s)
	}
}

// A flipped bit, anywhere but in the log: an error, or no difference.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	const seed, n = 13, 25
	whole := used(t, seed, n)
	for part, every := range map[string]int{tableSuffix: 113, manifestPrefix: 17, guardFile: 5, formatFile: 1} {
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
						wantKnown(t, err, name, at)
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

// wantKnown is what an error about a damaged file must be: damage, or an unknown format where the bit said so.
func wantKnown(t *testing.T, err error, name string, at int) {
	t.Helper()
	var d *DamageError
	if !errors.As(err, &d) && !errors.Is(err, ErrNewerFormat) {
		t.Errorf("bit in byte %d of %s: %v", at, name, err)
	}
	if strings.HasSuffix(name, tableSuffix) && !strings.Contains(err.Error(), filepath.Base(name)[:6]) {
		t.Errorf("bit in byte %d of %s is blamed on: %v", at, name, err)
	}
}

// The tail of the log that a crash has torn is cut, wherever it was torn.
func TestTornTailIsCut(t *testing.T) {
	t.Parallel()
	const seed, n = 14, 6
	whole := used(t, seed, n)
	log := newest(t, whole)
	size := len(whole.contents(t, log))
	last := -1
	for cut := size - 1; cut > 0; cut -= 1 + size/200 {
		disk := whole.crash(1, 100)
		rest := append([]byte(nil), disk.contents(t, log)[:cut]...)
		f, err := disk.MemFS.Create(log, "")
		if err == nil {
			_, err = f.Write(rest)
		}
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			t.Fatal(err)
		}
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
}

// newest is the log that is written to.
func newest(t *testing.T, d *testDisk) string {
	t.Helper()
	best := ""
	for _, name := range d.files(t, logSuffix) {
		if len(d.contents(t, name)) > 0 {
			best = max(best, name)
		}
	}
	return best
}

func TestNewerFormatsAreRefused(t *testing.T) {
	t.Parallel()
	newer := map[string]func(*testing.T, *testDisk){
		"format file": func(t *testing.T, d *testDisk) {
			t.Helper()
			rewrite(t, d, d.PathJoin(testDir, formatFile), "broker store, format 2\n")
		},
		"tables": func(t *testing.T, d *testDisk) {
			t.Helper()
			f, err := d.MemFS.Create(d.PathJoin(testDir, formatMarker+"000900.900"), "")
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		},
		"version key": func(t *testing.T, d *testDisk) {
			t.Helper()
			s := mustOpen(t, d)
			err := s.apply(func(b *pebble.Batch) error {
				return b.Set([]byte{spaceVersion}, binary.AppendUvarint(nil, formatVersion+1), nil)
			})
			if err := errors.Join(err, s.Close()); err != nil {
				t.Fatal(err)
			}
		},
		"record": func(t *testing.T, d *testDisk) {
			t.Helper()
			s := mustOpen(t, d)
			var k jobKey
			err := s.apply(func(b *pebble.Batch) error {
				return b.Set(k.of(spaceJob, 1, partJob), []byte{recordVersion + 1}, nil)
			})
			if err := errors.Join(err, s.Close()); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, change := range newer {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := newDisk()
			mustClose(t, mustOpen(t, disk))
			change(t, disk)
			s, err := Open(small(disk))
			if err == nil {
				err = s.Scan(context.Background(), nil, func(*Record) error { return nil })
				mustClose(t, s)
			}
			if !errors.Is(err, ErrNewerFormat) || !strings.Contains(err.Error(), testDir) {
				t.Error(err)
			}
		})
	}
}

func rewrite(t *testing.T, d *testDisk, name, text string) {
	t.Helper()
	f, err := d.MemFS.Create(name, "")
	if err == nil {
		_, err = f.Write([]byte(text))
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestFormatFile(t *testing.T) {
	t.Parallel()
	disk := newDisk()
	mustClose(t, mustOpen(t, disk))
	path := disk.PathJoin(testDir, formatFile)
	if got := string(disk.contents(t, path)); got != "broker store, format 1\n" {
		t.Errorf("%q", got)
	}
	rewrite(t, disk, path, "scribble")
	_, err := Open(small(disk))
	wantDamage(t, err, formatFile)
	if err := disk.MemFS.Remove(path); err != nil { // crashed before it was written
		t.Fatal(err)
	}
	mustClose(t, mustOpen(t, disk))
	if _, err := disk.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestStoreIsForOneProcess(t *testing.T) {
	t.Parallel()
	disk := newDisk()
	s := mustOpen(t, disk)
	for _, readOnly := range []bool{false, true} {
		o := small(disk)
		o.ReadOnly = readOnly
		if _, err := Open(o); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), testDir) {
			t.Error(err)
		}
	}
	mustClose(t, s)
	mustClose(t, mustOpen(t, disk))

	dir := t.TempDir()
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: dir}); !errors.Is(err, ErrInUse) {
		t.Error(err)
	}
	mustClose(t, s)
}

func TestFolderThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for _, errno := range []syscall.Errno{syscall.EROFS, syscall.EACCES, syscall.ENOSPC} {
		disk := newDisk()
		disk.hook(func(op diskOp) error {
			if op.write {
				return &os.PathError{Op: op.verb, Path: op.name, Err: errno}
			}
			return nil
		})
		if _, err := Open(small(disk)); !errors.Is(err, errno) || errors.Is(err, ErrInUse) ||
			!strings.Contains(err.Error(), testDir) {
			t.Errorf("new folder, %v: %v", errno, err)
		}
		disk.hook(nil)
		mustClose(t, mustOpen(t, disk))
		disk.hook(func(op diskOp) error {
			if op.write {
				return &os.PathError{Op: op.verb, Path: op.name, Err: errno}
			}
			return nil
		})
		if _, err := Open(small(disk)); !errors.Is(err, errno) || !strings.Contains(err.Error(), testDir) {
			t.Errorf("old folder, %v: %v", errno, err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var d *DamageError
	if _, err := Open(Options{Dir: file}); err == nil || errors.As(err, &d) {
		t.Error(err)
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	const seed, n = 15, 50
	o := small(newDisk())
	o.ReadOnly = true
	if _, err := Open(o); !errors.Is(err, ErrNoStore) {
		t.Errorf("nothing there: %v", err)
	}
	disk := used(t, seed, n)
	disk.hook(func(op diskOp) error {
		if op.write && !strings.HasSuffix(op.name, lockFile) {
			t.Errorf("%s %s", op.verb, op.name)
		}
		return nil
	})
	o = small(disk)
	o.ReadOnly = true
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, s)
	if err := after(seed, n).same(s); err != nil {
		t.Error(err)
	}
	if err := s.Commit(&Batch{Marks: []core.Mark{{Name: "x"}}}); !errors.Is(err, ErrReadOnly) {
		t.Error(err)
	}
	check(t, s)
}

func TestDoctorFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newDisk())
	mustCommit(t, s, Change{Seq: 1, Job: job(1, 2*InlineBytes)}, Change{Seq: 2, Job: job(2, 1), Failure: fullFailure()},
		Change{Seq: 3, Job: job(3, 2*InlineBytes)}, Change{Seq: 4, Job: job(4, 2*InlineBytes)})
	var k jobKey
	err := s.apply(func(b *pebble.Batch) error {
		return errors.Join(
			b.Set(k.of(spaceJob, 9, partStatus), appendStatus(nil, 9, fullStatus()), nil), // of no job
			b.Set(k.of(spaceBody, 8, partJob), []byte("x"), nil),                          // of no job
			b.Delete(k.of(spaceBody, 1, partJob), nil),                                    // wanted
			b.Set(k.of(spaceBody, 3, partJob), []byte("x"), nil),                          // too short
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
