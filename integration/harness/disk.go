package harness

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
)

// SmallDisk is a folder on a small file system of its own. It requires root.
type SmallDisk struct {
	Dir string
	t   testing.TB
}

// NewSmallDisk mounts a SmallDisk for the duration of the test.
func NewSmallDisk(t testing.TB, bytes int) *SmallDisk {
	t.Helper()
	d := &SmallDisk{Dir: t.TempDir(), t: t}
	err := syscall.Mount("tmpfs", d.Dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", bytes))
	if errors.Is(err, syscall.EPERM) {
		skip(t, "only root can mount the small disk of this test")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(d.Dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Resize changes the size of the file system.
func (d *SmallDisk) Resize(bytes int) { d.remount(0, fmt.Sprintf("size=%d", bytes)) }

// ReadOnly remounts the file system read-only.
func (d *SmallDisk) ReadOnly() { d.remount(syscall.MS_RDONLY, "") }

func (d *SmallDisk) remount(flags uintptr, options string) {
	d.t.Helper()
	if err := syscall.Mount("tmpfs", d.Dir, "tmpfs", syscall.MS_REMOUNT|flags, options); err != nil {
		d.t.Fatal(err)
	}
}

// Free is the free space in bytes.
func (d *SmallDisk) Free() int {
	d.t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(d.Dir, &s); err != nil {
		d.t.Fatal(err)
	}
	return int(s.Bavail) * int(s.Bsize)
}
