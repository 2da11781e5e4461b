package store

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core"
)

// TestNewJobsAreNotWrittenAgain fills several write buffers with jobs that nobody takes, each commit with a mark: their
// tables overlap nothing and need no merging, only those of the mark do.
func TestNewJobsAreNotWrittenAgain(t *testing.T) {
	s, err := Open(Options{Dir: testDir, FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, s)
	const flushes, perCommit, bodyBytes = 8, 256, 1 << 10
	bodies := noise(1 << 20)
	b := &Batch{Marks: []core.Mark{{Name: "totals", Value: []byte("1")}}}
	for seq := uint64(0); seq < flushes*defaultMemTableBytes/bodyBytes; {
		b.Changes = b.Changes[:0]
		for range perCommit {
			seq++
			at := seq * 7919 % uint64(len(bodies)-bodyBytes)
			b.Changes = append(b.Changes, Change{Seq: seq, Job: benchJob(seq, bodies[at:at+bodyBytes])})
		}
		if err := s.Commit(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	m := s.db.Metrics()
	var flushed, merged uint64
	for _, l := range m.Levels {
		flushed += l.TableBytesFlushed
		merged += l.TableBytesCompacted
	}
	t.Logf("%d MiB flushed, %d KiB merged", flushed>>20, merged>>10)
	if m.Flush.Count < flushes || flushed < flushes*defaultMemTableBytes/2 {
		t.Fatalf("%d flushes of %d bytes prove nothing", m.Flush.Count, flushed)
	}
	if merged > flushed/20 {
		t.Errorf("%d of %d bytes were written again", merged, flushed)
	}
}
