package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"broker/core/internal/record"
)

// mustEncode encodes an entry that its format can carry.
func mustEncode(e *record.Entry) []byte {
	b, err := record.AppendEntry(nil, e)
	if err != nil {
		panic(err)
	}
	return b
}

// chained makes the encodings of n entries that follow one another, each with one job.
func chained(n int) [][]byte {
	var all [][]byte
	chain := uint64(0)
	for i := range n {
		e := &record.Entry{
			Position: record.Position{
				Format: record.NewestFormat, Epoch: 2, Number: uint64(i + 1), At: 7, Chain: chain,
			},
			Prev:  uint64(i),
			Batch: &record.CommitBatch{Changes: []record.Change{{Seq: uint64(i + 1), Job: job(uint64(i+1), 900)}}},
		}
		b := mustEncode(e)
		chain = record.ChainOf(b)
		all = append(all, b)
	}
	return all
}

func openReplicated(t *testing.T, disk *testDisk) *Store {
	t.Helper()
	o := small(disk)
	o.Replicated = true
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// After a crash, the store of a member is at an entry that it had, never between two entries. Later entries come
// again from the log.
func TestMemberReplaysEntriesLostInACrash(t *testing.T) {
	t.Parallel()
	entries := chained(300)
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 1))
		disk := newDisk()
		flushed := uint64(0)
		s := openReplicated(t, disk)
		for at := 0; at < len(entries); {
			stop := min(at+random.IntN(120), len(entries))
			for ; at < stop; at++ {
				if err := s.Apply(entries[at], uint64(at+10)); err != nil {
					t.Fatal(err)
				}
			}
			if random.IntN(2) == 0 {
				if err := s.Flush(); err != nil {
					t.Fatal(err)
				}
				flushed = uint64(at)
			}
			left := disk.crash(random.Uint64(), random.IntN(101))
			mustClose(t, s)
			disk = left
			s = openReplicated(t, disk)
			got := s.Position()
			if got.Number < flushed || got.Number > uint64(at) || got.Number > 0 && got.Index != got.Number+9 {
				t.Fatalf("seed %d: at %+v after %d entries, %d flushed", seed, got, at, flushed)
			}
			if r := check(t, s); r.Jobs != got.Number {
				t.Fatalf("seed %d: %d jobs at entry %d", seed, r.Jobs, got.Number)
			}
			at = int(got.Number)
		}
		for i, e := range entries { // all are there: again they change nothing
			if err := s.Apply(e, uint64(i+10)); err != nil {
				t.Fatal(err)
			}
		}
		if r := check(t, s); r.Jobs != uint64(len(entries)) ||
			s.Position().Chain != record.ChainOf(entries[len(entries)-1]) {
			t.Errorf("seed %d: %d jobs, %+v", seed, r.Jobs, s.Position())
		}
	}
}

func TestMemberWithAnotherHistoryIsFound(t *testing.T) {
	t.Parallel()
	entries := chained(3)
	s := openReplicated(t, newDisk())
	if err := s.Apply(entries[0], 2); err != nil {
		t.Fatal(err)
	}
	other := &record.Entry{
		Position: record.Position{Epoch: 2, Number: 2, Chain: 4711}, Prev: 1, Batch: &record.CommitBatch{},
	}
	if err := s.Apply(mustEncode(other), 3); !errors.Is(err, ErrDiverged) {
		t.Error(err)
	}
	if err := s.Apply(entries[2], 3); !errors.Is(err, ErrSequence) {
		t.Error(err)
	}
	if err := s.Apply(entries[1][:5], 3); !record.IsInvalid(err) {
		t.Error(err)
	}
	if err := s.Apply(entries[1], 3); err != nil {
		t.Error(err)
	}
}

func TestStoresJoinAndLeaveClusters(t *testing.T) {
	t.Parallel()
	disk := newDisk()
	s := mustOpen(t, disk)
	mustCommit(t, s, record.Change{Seq: 1, Job: job(1, 10)})
	mustClose(t, s)
	s = openReplicated(t, disk)
	if err := s.Join("c1", 1); err != nil {
		t.Fatal(err)
	}
	disk = disk.crash(1, 0)
	s = openReplicated(t, disk)
	if at := s.Position(); s.Cluster() != "c1" || at.Index != 1 || at.Number != 1 {
		t.Errorf("%q at %+v", s.Cluster(), at)
	}
	if err := s.Leave(); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	s = mustOpen(t, disk)
	if at := s.Position(); s.Cluster() != "" || at.Index != 0 || at.Number != 1 {
		t.Errorf("%q at %+v", s.Cluster(), at)
	}
	mustCommit(t, s, record.Change{Seq: 2, Job: job(2, 10)})
	if r := check(t, s); r.Jobs != 2 {
		t.Errorf("%d jobs", r.Jobs)
	}
}

// The log keeps its bounds and its entries through crashes.
func TestLogSurvivesCrashes(t *testing.T) {
	t.Parallel()
	disk := newDisk()
	open := func() *Log {
		l, err := OpenLog(small(disk))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	want := func(l *Log, first, last uint64) {
		t.Helper()
		if f, n := l.Bounds(); f != first || n != last {
			t.Errorf("from %d to %d, want %d to %d", f, n, first, last)
		}
		for at := first; at != 0 && at <= last; at++ {
			if b, err := l.Entry(at); err != nil || string(b) != fmt.Sprint("entry ", at) {
				t.Errorf("entry %d: %q, %v", at, b, err)
			}
		}
		if _, err := l.Entry(last + 1); !errors.Is(err, ErrMissing) {
			t.Errorf("entry %d: %v", last+1, err)
		}
	}
	add := func(l *Log, from, n uint64) {
		t.Helper()
		var all [][]byte
		for i := range n {
			all = append(all, fmt.Append(nil, "entry ", from+i))
		}
		if err := l.Append(from, all); err != nil {
			t.Fatal(err)
		}
	}
	l := open()
	want(l, 0, 0)
	add(l, 5, 20)
	want(l, 5, 24)
	for _, step := range []struct{ low, high, first, last uint64 }{
		{5, 9, 10, 24}, {20, 24, 10, 19}, {1, 3, 10, 19}, {30, 40, 10, 19},
	} {
		if err := l.Remove(step.low, step.high); err != nil {
			t.Fatal(err)
		}
		want(l, step.first, step.last)
	}
	if err := l.SetValue([]byte("term"), []byte("7")); err != nil {
		t.Fatal(err)
	}
	disk = disk.crash(3, 50)
	l = open()
	want(l, 10, 19)
	if v, err := l.Value([]byte("term")); err != nil || string(v) != "7" {
		t.Errorf("%q, %v", v, err)
	}
	if v, err := l.Value([]byte("vote")); err != nil || v != nil {
		t.Errorf("%q, %v", v, err)
	}
	if err := l.Remove(10, 19); err != nil {
		t.Fatal(err)
	}
	want(l, 0, 0)
	add(l, 100, 2)
	want(l, 100, 101)
}
