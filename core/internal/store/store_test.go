package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/record/recordtest"
)

// small are options for a store that writes tables soon.
func small(fs vfs.FS) Options {
	return Options{
		Dir: testDir, FS: fs, MemTableBytes: minMemTableBytes, CacheBytes: 64 << 10,
	}
}

func mustOpen(t *testing.T, fs vfs.FS) *Store {
	t.Helper()
	s, err := Open(small(fs))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func mustCommit(t *testing.T, s *Store, changes ...record.Change) {
	t.Helper()
	if err := s.Commit(&record.CommitBatch{Changes: changes}); err != nil {
		t.Fatal(err)
	}
}

func mustClose(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func job(seq uint64, bodyBytes int) *core.Job {
	j := recordtest.FullJob()
	j.Seq = seq
	j.Body = nil
	if bodyBytes > 0 {
		j.Body = bytes.Repeat([]byte{byte('a' + seq%26)}, bodyBytes)
	}
	return j
}

func wantSame(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
}

func TestCommittedDataIsReadBack(t *testing.T) {
	t.Parallel()
	disk := newDisk()
	s := mustOpen(t, disk)
	mustCommit(t, s,
		record.Change{Seq: 1, Job: job(1, 10)},
		record.Change{Seq: 2, Job: job(2, record.InlineBytes+1), Status: recordtest.FullStatus()},
		record.Change{
			Seq: 3, Job: job(3, 0), Status: recordtest.FullStatus(), Failure: recordtest.FullFailure(),
			Outcome:  recordtest.FullOutcome(),
			Timeline: []record.TimelineSlot{{Slot: 0}, {Slot: 1, Entry: core.TimelineEntry{Text: "replaced"}}},
		},
	)
	mustCommit(t, s,
		record.Change{Seq: 3, Timeline: []record.TimelineSlot{{Slot: 1, Entry: *recordtest.FullTimelineEntry()}}})
	for range 2 { // from the write buffer, then from a table
		for seq, size := range map[uint64]int{1: 10, 2: record.InlineBytes + 1, 3: 0} {
			got, err := s.Job(seq)
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, got, job(seq, size))
		}
		st, err := s.Status(2)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, st, recordtest.FullStatus())
		e, err := s.Failure(3)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, e, recordtest.FullFailure())
		o, err := s.Outcome(3)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, o, recordtest.FullOutcome())
		past, err := s.Timeline(3)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, past, []core.TimelineEntry{{}, *recordtest.FullTimelineEntry()})
		if past, err = s.Timeline(2); len(past) > 0 || err != nil {
			t.Errorf("a job without a timeline has %v, %v", past, err)
		}
		mustClose(t, s)
		s = mustOpen(t, disk)
	}
}

func TestMissingKeysReturnErrMissing(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newDisk())
	mustCommit(t, s, record.Change{Seq: 5, Job: job(5, 1)})
	_, errJob := s.Job(4)
	_, errStatus := s.Status(5)
	_, errFailure := s.Failure(5)
	_, errOutcome := s.Outcome(5)
	_, errMark := s.Meta("x")
	for _, err := range []error{errJob, errStatus, errFailure, errOutcome, errMark} {
		if !errors.Is(err, ErrMissing) {
			t.Error(err)
		}
	}
}

func TestRemovedJobLeavesNoKeys(t *testing.T) {
	t.Parallel()
	disk := newDisk()
	s := mustOpen(t, disk)
	e, o := recordtest.FullFailure(), recordtest.FullOutcome()
	e.Data, o.Result = make([]byte, record.InlineBytes), make([]byte, record.InlineBytes)
	past := []record.TimelineSlot{{Slot: 0}, {Slot: 2}}
	mustCommit(t, s, record.Change{
		Seq: 1, Job: job(1, record.InlineBytes+1), Status: recordtest.FullStatus(), Failure: e, Outcome: o,
		Timeline: past,
	})
	mustCommit(t, s, record.Change{Seq: 2, Job: job(2, record.InlineBytes+1)})
	if r := check(t, s); r.Jobs != 2 || r.Bodies != 2 || r.Statuses != 1 || r.Failures != 1 || r.Outcomes != 1 ||
		r.TimelineEntries != 2 {
		t.Errorf("%+v", r)
	}
	mustClose(t, s) // and the removal meets a table
	s = mustOpen(t, disk)
	mustCommit(t, s,
		record.Change{
			Seq: 1, Gone: true, Stored: record.HasStatus | record.HasFailure | record.HasOutcome,
			BodyBytes: record.InlineBytes + 1, TimelineSlots: 3,
		},
		record.Change{Seq: 2, Gone: true, Stored: record.HasBody})
	mustClose(t, s)
	s = mustOpen(t, disk)
	wantSame(t, keys(t, s), onlyPosition)
}

// onlyPosition has the keys of a store without jobs: the position of the last entry, and the format version.
var onlyPosition = []string{"m\x00", "v"}

// keys are all keys of a store, in Go syntax without the numbers.
func keys(t *testing.T, s *Store) []string {
	t.Helper()
	it, err := s.db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for ok := it.First(); ok; ok = it.Next() {
		all = append(all, string(it.Key()))
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		t.Fatal(err)
	}
	return all
}

// check returns the report of Check, which must have no findings.
func check(t *testing.T, s *Store) Report {
	t.Helper()
	r, err := s.Check(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Damage)+len(r.Orphans) > 0 {
		t.Errorf("damage %q, orphans %q", r.Damage, r.Orphans)
	}
	return r
}

func TestFailureMayGrowAndShrink(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newDisk())
	mustCommit(t, s, record.Change{Seq: 1, Job: job(1, 1)})
	for _, size := range []int{1, 5000, 2, 6000, 3} {
		want := &core.Failure{Message: fmt.Sprint(size), Data: bytes.Repeat([]byte("x"), size)}
		mustCommit(t, s, record.Change{Seq: 1, Failure: want})
		got, err := s.Failure(1)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, got, want)
		check(t, s)
	}
}

func TestScanReturnsJobsInOrderWithTheirParts(t *testing.T) {
	t.Parallel()
	disk := newDisk()
	s := mustOpen(t, disk)
	const jobs = 300 // enough for several tables
	big := recordtest.FullOutcome()
	big.Result = make([]byte, 2*record.InlineBytes)
	for i := range jobs {
		seq := uint64(jobs - i)
		ch := record.Change{Seq: seq, Job: job(seq, int(seq)*8)}
		if seq%3 == 0 {
			ch.Status = recordtest.FullStatus()
		}
		if seq%5 == 0 {
			ch.Failure, ch.Outcome = recordtest.FullFailure(), big
		}
		mustCommit(t, s, ch)
	}
	next, parts := uint64(1), []float64{}
	err := s.Scan(context.Background(), func(_ uint64, part float64) { parts = append(parts, part) },
		func(r *record.Record) error {
			seq := r.Job.Seq
			if seq != next {
				t.Fatalf("job %d instead of %d", seq, next)
			}
			next++
			wantRecord(t, r)
			return nil
		})
	if err != nil || next != jobs+1 {
		t.Fatalf("up to %d, %v", next, err)
	}
	if len(parts) == 0 || parts[len(parts)-1] != 1 {
		t.Errorf("progress %v", parts)
	}
}

func wantRecord(t *testing.T, r *record.Record) {
	t.Helper()
	seq := r.Job.Seq
	want, parts := job(seq, int(seq)*8), record.Parts(0)
	size := len(want.Body)
	if size > record.InlineBytes {
		want.Body = nil
		parts |= record.HasBody
	}
	wantSame(t, r.Job, want)
	if seq%3 == 0 {
		parts |= record.HasStatus
		wantSame(t, r.Status, recordtest.FullStatus())
	}
	if (r.Status != nil) != (seq%3 == 0) {
		t.Errorf("job %d: status %v", seq, r.Status)
	}
	if seq%5 == 0 {
		parts |= record.HasFailure | record.HasOutcome
	}
	if r.Stored != parts || r.BodyBytes != size {
		t.Errorf("job %d: parts %b, %d bytes of body", seq, r.Stored, r.BodyBytes)
	}
}

func TestScanStopsOnErrorOrCancellation(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newDisk())
	for seq := uint64(1); seq <= 3; seq++ {
		mustCommit(t, s, record.Change{Seq: seq, Job: job(seq, 1)})
	}
	n := 0
	err := s.Scan(context.Background(), nil, func(*record.Record) error { n++; return errInjected })
	if !errors.Is(err, errInjected) || n != 1 {
		t.Errorf("%d jobs, %v", n, err)
	}
	batch := &record.CommitBatch{}
	for seq := uint64(4); seq < 2*scanTick; seq++ {
		batch.Changes = append(batch.Changes, record.Change{Seq: seq, Job: &core.Job{Seq: seq}})
	}
	if err := s.Commit(batch); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Scan(ctx, nil, func(*record.Record) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestNamesOfAScanMayBeKept(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newDisk())
	var queues, types, workers []string
	for seq := uint64(1); seq <= 100; seq++ {
		j, st := job(seq, 1), recordtest.FullStatus()
		j.Queue, j.Type, st.Worker = fmt.Sprint("q", seq%7), fmt.Sprint("t", seq%5), fmt.Sprint("w", seq)
		mustCommit(t, s, record.Change{Seq: seq, Job: j, Status: st})
	}
	err := s.Scan(context.Background(), nil, func(r *record.Record) error {
		queues, types, workers = append(queues,
			r.Job.Queue), append(types, r.Job.Type), append(workers, r.Status.Worker)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range queues {
		seq := i + 1
		if queues[i] != fmt.Sprint("q", seq%7) || types[i] != fmt.Sprint("t", seq%5) ||
			workers[i] != fmt.Sprint("w", seq) {
			t.Fatalf("job %d: queue %q, type %q, worker %q", seq, queues[i], types[i], workers[i])
		}
	}
}

func TestMetadataEntriesAreKept(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newDisk())
	write := func(marks ...core.MetaEntry) {
		if err := s.Commit(&record.CommitBatch{Meta: marks}); err != nil {
			t.Fatal(err)
		}
	}
	write(core.MetaEntry{Name: "a/1", Value: []byte("one")}, core.MetaEntry{Name: "a/2", Value: []byte{}},
		core.MetaEntry{Name: "a\xff", Value: []byte("x")}, core.MetaEntry{Name: "b", Value: []byte("y")},
		core.MetaEntry{Name: "", Value: []byte("z")})
	write(core.MetaEntry{Name: "a/1", Value: []byte("uno")}, core.MetaEntry{Name: "b"})
	if v, err := s.Meta("a/1"); string(v) != "uno" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if v, err := s.Meta("a/2"); v == nil || len(v) != 0 || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if _, err := s.Meta("b"); !errors.Is(err, ErrMissing) {
		t.Error(err)
	}
	for prefix, want := range map[string]string{
		"a/": "[a/1=uno a/2=]", "": "[=z a/1=uno a/2= a\xff=x]", "a\xff": "[a\xff=x]", "b": "[]",
	} {
		got := []string{}
		err := s.ScanMeta(prefix, func(name string, value []byte) error {
			got = append(got, name+"="+string(value))
			return nil
		})
		if fmt.Sprint(got) != want || err != nil {
			t.Errorf("marks from %q: %q, %v", prefix, got, err)
		}
	}
	if err := s.ScanMeta("", func(string, []byte) error { return errInjected }); !errors.Is(err, errInjected) {
		t.Error(err)
	}
}

// Entries are applied in order and only once, regardless of crashes in between.
func TestEntriesThatDoNotFollowAreRefused(t *testing.T) {
	t.Parallel()
	disk := newDisk()
	s := mustOpen(t, disk)
	entry := func(epoch, prev, number, seq uint64) *record.Entry {
		return &record.Entry{
			Position: record.Position{Epoch: epoch, Number: number, At: 7}, Prev: prev,
			Batch: &record.CommitBatch{Changes: []record.Change{{Seq: seq, Job: job(seq, 1)}}},
		}
	}
	for _, e := range []*record.Entry{entry(1, 0, 1, 1), entry(1, 1, 5, 2), entry(2, 5, 6, 3)} {
		if err := s.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if got := s.Position(); got != (record.Position{Epoch: 2, Number: 6, At: 7}) {
			t.Errorf("the store is at %+v", got)
		}
		for name, e := range map[string]*record.Entry{
			"again": entry(2, 5, 6, 9), "one is missing": entry(2, 7, 8, 9), "of an engine replaced": entry(1, 6, 7, 9),
		} {
			if err := s.Append(e); !errors.Is(err, ErrSequence) {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := s.Job(9); !errors.Is(err, ErrMissing) {
				t.Errorf("%s: it was applied", name)
			}
		}
		if s.Err() != nil {
			t.Fatal(s.Err())
		}
		left := disk.crash(1, 0)
		mustClose(t, s)
		disk = left
		s = mustOpen(t, disk)
	}
	if err := s.Append(entry(2, 6, 7, 4)); err != nil {
		t.Error(err)
	}
}

// If jobs come and go before the write buffer is full, a flush has nothing to write, which is not a failure.
func TestShortLivedJobsNeedNoTable(t *testing.T) {
	t.Parallel()
	disk := newDisk()
	s := mustOpen(t, disk)
	for seq := uint64(1); s.Metrics().Flushes < 5; seq++ {
		mustCommit(t, s, record.Change{Seq: seq, Job: job(seq, 500)},
			record.Change{Seq: seq + 1, Job: job(seq+1, 2000)})
		mustCommit(t, s, record.Change{Seq: seq, Gone: true}, record.Change{Seq: seq + 1, Gone: true, BodyBytes: 2000})
		seq++
	}
	// A flush writes the format version, the position of the last entry, and the jobs of the last commit if the buffer
	// is full before they are gone.
	if m := s.Metrics(); m.FlushedBytes > 5<<10*m.Flushes {
		t.Errorf("%d bytes in tables after %d flushes", m.FlushedBytes, m.Flushes)
	}
	wantSame(t, keys(t, s), onlyPosition)
}

func TestClosedStoreRefusesEverything(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newDisk())
	mustCommit(t, s, record.Change{Seq: 1, Job: job(1, 1)})
	inScan := s.Scan(context.Background(), nil, func(*record.Record) error {
		closed := make(chan error)
		go func() { closed <- s.Close() }()
		for { // until Close refuses calls; it waits for this very scan
			if _, err := s.Job(1); err != nil {
				return err
			}
		}
	})
	if !errors.Is(inScan, ErrClosed) {
		t.Errorf("read during close: %v", inScan)
	}
	_, errJob := s.Job(1)
	errs := []error{
		errJob, s.Commit(&record.CommitBatch{Meta: []core.MetaEntry{{Name: "x"}}}), s.Checkpoint("/copy"),
		s.Scan(context.Background(), nil, nil), s.ScanMeta("", nil),
	}
	for i, err := range errs {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if s.Metrics().DiskBytes != 0 {
		t.Error("a closed store has a size")
	}
	mustClose(t, s)
}

// A table that spans key spaces would overlap all later tables, and they would be compacted with it again and again.
func TestTablesDoNotSpanKeySpaces(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, used(t, 18, 60))
	defer mustClose(t, s)
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	levels, err := s.db.SSTables()
	if err != nil {
		t.Fatal(err)
	}
	spaces := map[byte]bool{}
	for _, tables := range levels {
		for _, table := range tables {
			from, to := table.Smallest.UserKey, table.Largest.UserKey
			if from[0] != to[0] {
				t.Errorf("table %v reaches from %x to %x", table.FileNum, from, to)
			}
			spaces[from[0]] = true
		}
	}
	if len(spaces) < 3 {
		t.Errorf("there are tables of %d key spaces only", len(spaces))
	}
}
