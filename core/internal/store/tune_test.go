package store

import (
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core"
	"broker/core/internal/record"
)

// TestNewJobsAreNotWrittenAgain fills several write buffers with jobs that no worker takes; each commit also rewrites
// one metadata entry. The tables of jobs overlap no other tables and are not compacted; only the tables of the entry
// are.
func TestNewJobsAreNotWrittenAgain(t *testing.T) {
	t.Parallel()
	const memTable, flushes, perCommit, bodyBytes = 2 << 20, 12, 256, 1 << 10
	s, err := Open(Options{Dir: testDir, FS: vfs.NewMem(), MemTableBytes: memTable})
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, s)
	bodies := noise(1 << 20)
	b := &record.CommitBatch{Meta: []core.MetaEntry{{Name: "totals", Value: []byte("1")}}}
	for seq := uint64(0); seq < flushes*memTable/bodyBytes; {
		b.Changes = b.Changes[:0]
		for range perCommit {
			seq++
			at := seq * 7919 % uint64(len(bodies)-bodyBytes)
			b.Changes = append(b.Changes, record.Change{Seq: seq, Job: benchJob(seq, bodies[at:at+bodyBytes])})
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
	if m.Flush.Count < flushes/2 || flushed < flushes*memTable/2 {
		t.Fatalf("%d flushes of %d bytes prove nothing", m.Flush.Count, flushed)
	}
	if merged > memTable*3/2+flushed/20 { // the first write buffers are small: one merge may take them in
		t.Errorf("%d of %d bytes were written again", merged, flushed)
	}
}

// TestJobsThatLeaveInRandomOrderKeepTablesLarge replaces jobs at random, so that nearly all tables are compacted: the
// results must not be small tables, of which a large store would have tens of thousands.
func TestJobsThatLeaveInRandomOrderKeepTablesLarge(t *testing.T) {
	t.Parallel()
	const memTable, jobs, perCommit, bodyBytes = 128 << 10, 3 << 10, 64, 1 << 10
	s, err := Open(Options{Dir: testDir, FS: vfs.NewMem(), MemTableBytes: memTable})
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, s)
	bodies := noise(1 << 20)
	r := rand.New(rand.NewPCG(5, 6))
	live := make([]uint64, jobs)
	b := &record.CommitBatch{Meta: []core.MetaEntry{{Name: "totals", Value: []byte("1")}}}
	for seq := uint64(0); seq < 3*jobs; {
		b.Changes = b.Changes[:0]
		for range perCommit {
			slot := int(seq)
			if seq >= jobs {
				slot = r.IntN(jobs)
				b.Changes = append(b.Changes, record.Change{Seq: live[slot], Gone: true, BodyBytes: bodyBytes})
			}
			seq++
			live[slot] = seq
			at := r.IntN(len(bodies) - bodyBytes)
			b.Changes = append(b.Changes, record.Change{Seq: seq, Job: benchJob(seq, bodies[at:at+bodyBytes])})
		}
		if err := s.Commit(b); err != nil {
			t.Fatal(err)
		}
	}
	var tables, bytes, merged uint64
	for _, l := range s.db.Metrics().Levels[1:] {
		tables += uint64(l.TablesCount)
		bytes += uint64(l.TablesSize)
		merged += l.TableBytesCompacted
	}
	t.Logf("%d tables of %d KiB, %d KiB merged", tables, bytes/max(1, tables)>>10, merged>>10)
	if merged < jobs*bodyBytes/4 {
		t.Fatal("too little was merged to show anything")
	}
	if bytes/tables < memTable/4 {
		t.Errorf("tables have %d bytes on average", bytes/tables)
	}
}
