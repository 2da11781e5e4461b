package replica

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"broker/core/internal/store"
)

// A node has most applied entries on disk, so that few are applied again after a crash.
func TestStoreIsFlushedAsItGrows(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "n1", "n2", "n3")
	c.change = func(o *Options) { o.flushEntries = 10 }
	c.start("n1", "n2", "n3")
	_, _, e := c.leader()
	for i := range 30 {
		submit(t, e, i, 1, 10)
	}
	c.caughtUp()
	for id, n := range c.nodes {
		crashes := 0
		eventually(t, func() string {
			crashes++
			have, err := onDisk(n, filepath.Join(t.TempDir(), fmt.Sprint(crashes)))
			if err != nil || have < 20 {
				return fmt.Sprint(id, " has only so many entries on disk: ", have, " ", err)
			}
			return ""
		})
	}
	shutdown(t, e)
}

// onDisk returns the number of the last entry that would be left in a node's store after a crash.
func onDisk(n *Node, dir string) (uint64, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return 0, err
	}
	files, err := filepath.Glob(filepath.Join(n.o.Dir, "*"))
	if err != nil {
		return 0, err
	}
	for _, path := range files {
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			continue // the folder of raft, or a file that was replaced
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return 0, err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)), content, 0o600); err != nil {
			return 0, err
		}
	}
	s, err := store.Open(store.Options{Dir: dir, Replicated: true})
	if err != nil {
		return 0, err
	}
	defer func() { _ = s.Close() }() // only read
	return s.Position().Number, nil
}
