package store_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"broker/core"
	"broker/core/coretest"
	"broker/core/internal/record"
	"broker/core/internal/store"
)

// follow reads what has changed into a set of jobs.
func follow(t *testing.T, f *store.Follower, jobs map[uint64]core.State) (seqs []uint64, meta []string) {
	t.Helper()
	c, err := f.Changes()
	if err != nil {
		t.Fatal(err)
	}
	for _, seq := range c.Jobs {
		delete(jobs, seq)
	}
	last := uint64(0)
	err = c.Records(context.Background(), c.Jobs, func(r *record.Record) error {
		if r.Job.Seq <= last || !slices.Contains(c.Jobs, r.Job.Seq) {
			t.Errorf("job %d after job %d, of %v", r.Job.Seq, last, c.Jobs)
		}
		last = r.Job.Seq
		jobs[last] = core.Ready
		if r.Status != nil {
			jobs[last] = r.Status.State
		}
		return nil
	})
	if err := errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
	return c.Jobs, c.Meta
}

func TestFollowerReadsChanges(t *testing.T) {
	t.Parallel()
	s, err := store.Open(store.Options{Dir: "data", FS: coretest.MemoryFS()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }() // the test is over
	random := rand.New(rand.NewPCG(1, 2))
	want, have := map[uint64]core.State{}, map[uint64]core.State{}
	f := s.Follow()
	next, number := uint64(0), uint64(0)
	for range 300 {
		for range 1 + random.IntN(3) {
			b, named := &record.CommitBatch{}, map[uint64]bool{}
			for range 1 + random.IntN(20) {
				seq := 1 + random.Uint64N(next+1)
				_, there := want[seq]
				switch kind := random.IntN(4); {
				case kind < 2:
					next += 1 + random.Uint64N(3)
					b.Changes = append(b.Changes, record.Change{
						Seq: next, Job: &core.Job{Seq: next, Queue: "q", Body: make([]byte, random.IntN(6000))},
					})
					want[next], named[next] = core.Ready, true
				case !there || named[seq]:
				case kind == 2:
					b.Changes = append(b.Changes, record.Change{Seq: seq, Status: &record.Status{State: core.Dead}})
					want[seq], named[seq] = core.Dead, true
				default:
					b.Changes = append(b.Changes,
						record.Change{Seq: seq, Gone: true, Stored: record.HasStatus | record.HasBody, BodyBytes: 6000})
					delete(want, seq)
					named[seq] = true
				}
			}
			number++
			e := &record.Entry{Position: record.Position{Number: number}, Prev: number - 1, Batch: b}
			if err := s.Append(e); err != nil {
				t.Fatal(err)
			}
		}
		follow(t, f, have)
		if len(have) != len(want) {
			t.Fatalf("%d jobs, want %d", len(have), len(want))
		}
		for seq, state := range want {
			if have[seq] != state {
				t.Fatalf("job %d is %v, want %v", seq, have[seq], state)
			}
		}
	}
	if seqs, meta := follow(t, f, have); len(seqs)+len(meta) > 0 {
		t.Errorf("changes without an entry: %v %v", seqs, meta)
	}
	f.Close()
	f.Close()
}

func TestFollowerNamesChangedMetadata(t *testing.T) {
	t.Parallel()
	s, err := store.Open(store.Options{Dir: "data", FS: coretest.MemoryFS()})
	if err != nil {
		t.Fatal(err)
	}
	f := s.Follow()
	for i, value := range [][]byte{[]byte("one"), []byte("two"), nil} {
		e := &record.Entry{
			Position: record.Position{Number: uint64(i + 1)}, Prev: uint64(i),
			Batch: &record.CommitBatch{Meta: []core.MetaEntry{
				{Name: "a", Value: value}, {Name: "b", Value: []byte("stays")},
			}},
		}
		if err := s.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	c, err := f.Changes()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Meta, []string{"a", "b"}) || c.Position.Number != 3 {
		t.Errorf("%v at %+v", c.Meta, c.Position)
	}
	if value, err := c.MetaEntry("b"); err != nil || string(value) != "stays" {
		t.Errorf("%q, %v", value, err)
	}
	if value, err := c.MetaEntry("a"); !errors.Is(err, store.ErrMissing) {
		t.Errorf("%q, %v", value, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := f.Changes(); !errors.Is(err, store.ErrClosed) {
		t.Errorf("changes of a closed store: %v", err)
	}
}
