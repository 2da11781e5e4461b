package store

import (
	"os"
	"regexp"
	"testing"
)

// pinnedPebble is the version of Pebble whose internals the store relies on. Before raising it, check in its source:
//
//   - vfs.FS and vfs.File: the methods through which Pebble changes the folder (faultfs wraps each of them);
//   - the goroutines on which Pebble reads on its own, and whose errors it panics on (faultfs.Latch.ReadFailed looks at the
//     stack);
//   - the order of the tags in a manifest's records, and that a log is needed from the number in the manifest on
//     (integrity reads manifests);
//   - the names of files and markers (integrity.Scan), and the error text for a missing table (tablesInError);
//   - that a background error follows a failed flush or compaction on the same goroutine (Store.listener);
//   - the limit of 25 target file sizes, and the share of the disk, by which compactions are extended (compactionRoom);
//   - when logs are created, recycled and closed, and at which offset a sync of a recycled log ends.
const pinnedPebble = "v2.1.7"

func TestPebbleIsTheVersionThatTheStoreWasWrittenFor(t *testing.T) {
	t.Parallel()
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^\s*github.com/cockroachdb/pebble/v2 (\S+)`).FindSubmatch(mod)
	if m == nil || string(m[1]) != pinnedPebble {
		t.Errorf("go.mod has Pebble %s; the store relies on internals of %s: see the list at pinnedPebble", m[1],
			pinnedPebble)
	}
}
