package store

import (
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// testDisk is a crashable disk in memory that calls a function before each operation. It is below faultfs.FS, so its
// errors are like those of a real disk.
type testDisk struct {
	*vfs.MemFS

	mu     sync.Mutex
	before func(diskOp) error
}

// diskOp is an operation on a file.
type diskOp struct {
	verb, name string
	write      bool
	category   vfs.DiskWriteCategory // of a file that is created
}

func newDisk() *testDisk { return &testDisk{MemFS: vfs.NewCrashableMem()} }

// hook sets the function that is called before every operation; its error makes the operation fail.
func (d *testDisk) hook(fn func(diskOp) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before = fn
}

func (d *testDisk) ask(verb, name string, write bool) error {
	return d.askOp(diskOp{verb: verb, name: name, write: write})
}

func (d *testDisk) askOp(op diskOp) error {
	d.mu.Lock()
	fn := d.before
	d.mu.Unlock()
	if fn == nil {
		return nil
	}
	return fn(op)
}

// crash returns the disk after a power failure: with all synced bytes, and a random share of the other blocks.
func (d *testDisk) crash(seed uint64, keepPercent int) *testDisk {
	cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: keepPercent, RNG: rand.New(rand.NewPCG(seed, 1))}
	return &testDisk{MemFS: d.CrashClone(cfg)}
}

func (d *testDisk) open(verb, name string, write bool, fn func() (vfs.File, error)) (vfs.File, error) {
	return d.openOp(diskOp{verb: verb, name: name, write: write}, fn)
}

func (d *testDisk) openOp(op diskOp, fn func() (vfs.File, error)) (vfs.File, error) {
	if err := d.askOp(op); err != nil {
		return nil, err
	}
	f, err := fn()
	if err != nil {
		return nil, err
	}
	return &testFile{File: f, disk: d, name: op.name}, nil
}

func (d *testDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	op := diskOp{verb: "create", name: name, write: true, category: c}
	return d.openOp(op, func() (vfs.File, error) { return d.MemFS.Create(name, c) })
}

func (d *testDisk) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return d.open("open", name, true, func() (vfs.File, error) { return d.MemFS.OpenReadWrite(name, c, o...) })
}

// ReuseForWrite has two steps, because that of MemFS takes a lock twice and deadlocks if a crash comes between.
func (d *testDisk) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return d.open("reuse", name, true, func() (vfs.File, error) {
		if err := d.MemFS.Rename(old, name); err != nil {
			return nil, err
		}
		return d.MemFS.OpenReadWrite(name, c)
	})
}

func (d *testDisk) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	return d.open("open", name, false, func() (vfs.File, error) { return d.MemFS.Open(name, o...) })
}

func (d *testDisk) OpenDir(name string) (vfs.File, error) {
	return d.open("opendir", name, false, func() (vfs.File, error) { return d.MemFS.OpenDir(name) })
}

func (d *testDisk) Link(old, name string) error {
	if err := d.ask("link", name, true); err != nil {
		return err
	}
	return d.MemFS.Link(old, name)
}

func (d *testDisk) Rename(old, name string) error {
	if err := d.ask("rename", name, true); err != nil {
		return err
	}
	return d.MemFS.Rename(old, name)
}

func (d *testDisk) Remove(name string) error {
	if err := d.ask("remove", name, true); err != nil {
		return err
	}
	return d.MemFS.Remove(name)
}

func (d *testDisk) MkdirAll(name string, perm os.FileMode) error {
	if err := d.ask("mkdir", name, true); err != nil {
		return err
	}
	return d.MemFS.MkdirAll(name, perm)
}

// testFile is an open file of a testDisk.
type testFile struct {
	vfs.File
	disk *testDisk
	name string
}

func (f *testFile) Read(p []byte) (int, error) {
	if err := f.disk.ask("read", f.name, false); err != nil {
		return 0, err
	}
	return f.File.Read(p)
}

func (f *testFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.disk.ask("read", f.name, false); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

func (f *testFile) Write(p []byte) (int, error) {
	if err := f.disk.ask("write", f.name, true); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

func (f *testFile) Sync() error {
	if err := f.disk.ask("sync", f.name, true); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *testFile) SyncData() error {
	if err := f.disk.ask("sync", f.name, true); err != nil {
		return err
	}
	return f.File.SyncData()
}

func (f *testFile) SyncTo(n int64) (bool, error) {
	if err := f.disk.ask("sync", f.name, true); err != nil {
		return false, err
	}
	return f.File.SyncTo(n)
}

// contents returns the bytes of a file, which the test may change.
func (d *testDisk) contents(t *testing.T, name string) []byte {
	t.Helper()
	b, err := d.UnsafeGetFileDataBuffer(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// files returns the paths in the folder of the store that end with suffix.
func (d *testDisk) files(t *testing.T, suffix string) []string {
	t.Helper()
	names, err := d.List(testDir)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, n := range names {
		if strings.HasSuffix(n, suffix) {
			found = append(found, d.PathJoin(testDir, n))
		}
	}
	return found
}

// writeFile makes or replaces a file.
func writeFile(t *testing.T, d *testDisk, name, text string) {
	t.Helper()
	f, err := d.MemFS.Create(name, "")
	if err == nil {
		_, err = f.Write([]byte(text))
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

const testDir = "/data/store"

var errInjected = errors.New("injected")
