package cluster_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"broker/integration/harness"
)

const mib = 1 << 20

// onSmallDisk makes a cluster whose first node has its store on a small disk, and starts it.
func onSmallDisk(t *testing.T, bytes int, config string) (*cluster, *filler) {
	t.Helper()
	d := harness.NewSmallDisk(t, bytes)
	c := prepare(t, nil, config)
	c.nodes[0].Data = filepath.Join(d.Dir, "data")
	return c.start(), &filler{t: t, disk: d, path: filepath.Join(d.Dir, "filler")}
}

// filler is a file that takes the space of a small disk.
type filler struct {
	t    *testing.T
	disk *harness.SmallDisk
	path string
}

// leave fills the disk until about so many bytes are free.
func (f *filler) leave(free int) {
	f.t.Helper()
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	check(f.t, err)
	defer func() { _ = file.Close() }() // its content does not matter
	for piece := make([]byte, 64<<10); ; {
		left := f.disk.Free() - free
		if left <= 0 {
			return
		}
		if _, err := file.Write(piece[:min(left, len(piece))]); errors.Is(err, syscall.ENOSPC) {
			return
		} else if err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *filler) remove() {
	f.t.Helper()
	check(f.t, os.Remove(f.path))
}

// A node whose disk is full stops with a clear error, whether it leads or not. The others go on. It comes back once
// there is space, and nothing is lost.
func TestNodeWithAFullDiskStopsAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	c, f := onSmallDisk(t, 96*mib, "min_free_disk = 0\n")
	for _, leads := range []bool{true, false} {
		name := "a follower's disk is full"
		c.transfer(1)
		if leads {
			name = "the leader's disk is full"
			c.transfer(0)
		}
		l := c.begin()
		l.goesOn("before " + name)
		f.leave(0)
		code, err := c.nodes[0].Wait(harness.Patience)
		check(t, err)
		if out := c.nodes[0].Output(); code == 0 || !strings.Contains(out, "no space left on device") {
			t.Errorf("%s: exit code %d, and it does not say why:\n%s", name, code, c.nodes[0].Tail())
		}
		l.goesOn(name)
		f.remove()
		c.restart(0)
		l.finish(t)
	}
}

// A leader whose disk is nearly full hands over to a node that has space, so that new jobs are accepted still.
func TestLeaderWithANearlyFullDiskHandsOver(t *testing.T) {
	t.Parallel()
	c, f := onSmallDisk(t, 160*mib, "min_free_disk = \"64 MiB\"\n"+calm)
	c.transfer(0)
	l := c.begin()
	l.goesOn("before the disk is nearly full")
	f.leave(40 * mib)
	c.awaitLeaderOtherThan(0)
	l.goesOn("the leader's disk is nearly full")
	c.logs(0, "handing the lead over, since the disk of this node is nearly full")
	if v := c.metric(0, "broker_disk_low"); v != 1 {
		t.Errorf("broker_disk_low is %v", v)
	}
	if _, body, err := c.nodes[0].Get("/healthz"); err != nil ||
		!strings.Contains(body, "disk of this node nearly full") {
		t.Errorf("health: %s %v", body, err)
	}
	time.Sleep(3 * time.Second) // it would be handed back once in a second
	if i := c.leader(); i == 0 {
		t.Error("the node with the nearly full disk leads again")
	}
	f.remove()
	harness.Eventually(t, func() string {
		if v := c.metric(0, "broker_disk_low"); v != 0 {
			return fmt.Sprint("broker_disk_low is ", v)
		}
		return ""
	})
	l.finish(t)
}
