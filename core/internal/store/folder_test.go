package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/store/integrity"
)

func TestNewerFormatsAreRefused(t *testing.T) {
	t.Parallel()
	newer := map[string]func(*testing.T, *testDisk){
		"format file": func(t *testing.T, d *testDisk) {
			t.Helper()
			text := fmt.Sprintf("broker store, format %d\n", record.NewestFormat+1)
			writeFile(t, d, d.PathJoin(testDir, integrity.FormatFile), text)
		},
		"tables": func(t *testing.T, d *testDisk) {
			t.Helper()
			f, err := d.MemFS.Create(d.PathJoin(testDir, integrity.FormatMarker+"000900.900"), "")
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		},
		"version key": func(t *testing.T, d *testDisk) {
			t.Helper()
			s := mustOpen(t, d)
			err := s.apply(func(b *pebble.Batch) error {
				return b.Set([]byte{spaceVersion}, binary.AppendUvarint(nil, record.NewestFormat+1), nil)
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
				return b.Set(k.of(spaceJob, 1, partJob), []byte{record.Version + 1}, nil)
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
				err = s.Scan(context.Background(), nil, func(*record.Record) error { return nil })
				mustClose(t, s)
			}
			if !errors.Is(err, record.ErrNewerFormat) || !strings.Contains(err.Error(), testDir) {
				t.Error(err)
			}
		})
	}
}

func TestFormatFile(t *testing.T) {
	t.Parallel()
	disk := newDisk()
	mustClose(t, mustOpen(t, disk))
	path := disk.PathJoin(testDir, integrity.FormatFile)
	if got := string(disk.contents(t, path)); got != fmt.Sprintf("broker store, format %d\n", integrity.BaseFormat) {
		t.Errorf("%q", got)
	}
	writeFile(t, disk, path, "scribble")
	_, err := Open(small(disk))
	wantDamage(t, err, integrity.FormatFile)
	if err := disk.MemFS.Remove(path); err != nil { // crashed before it was written
		t.Fatal(err)
	}
	mustClose(t, mustOpen(t, disk))
	if _, err := disk.Stat(path); err != nil {
		t.Error(err)
	}
}

// Older stores have a GUARD with one log and no length.
func TestGuardWithOneLogIsRead(t *testing.T) {
	t.Parallel()
	const seed, n = 17, 60
	disk := used(t, seed, n)
	log := disk.PathBase(newest(t, disk))
	path := disk.PathJoin(testDir, integrity.GuardFile)
	text := string(disk.contents(t, path))
	body := text[:strings.Index(text, "log ")] + "log " +
		strings.TrimLeft(strings.TrimSuffix(log, integrity.LogSuffix), "0") + "\n"
	writeFile(t, disk, path,
		fmt.Sprintf("%ssum %08x\n", body, crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli))))
	gone := disk.crash(1, 100)
	if got, err := readAll(disk, seed); err != nil || got != n {
		t.Errorf("%d commits, %v", got, err)
	}
	if err := gone.MemFS.Remove(gone.PathJoin(testDir, log)); err != nil {
		t.Fatal(err)
	}
	_, err := readAll(gone, seed)
	wantDamage(t, err, log)
}

func TestSecondProcessCannotOpenTheStore(t *testing.T) {
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

func TestErrorsOfTheFolderAreReported(t *testing.T) {
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

func TestReadOnlyStoreChangesNoFile(t *testing.T) {
	t.Parallel()
	const seed, n = 15, 50
	o := small(newDisk())
	o.ReadOnly = true
	if _, err := Open(o); !errors.Is(err, ErrNoStore) {
		t.Errorf("nothing there: %v", err)
	}
	disk := used(t, seed, n)
	disk.hook(func(op diskOp) error {
		if op.write && !strings.HasSuffix(op.name, integrity.LockFile) {
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
	if err := s.Commit(&record.CommitBatch{Meta: []core.MetaEntry{{Name: "x"}}}); !errors.Is(err, errReadOnly) {
		t.Error(err)
	}
	check(t, s)
}
