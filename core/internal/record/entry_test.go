package record_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/record/recordtest"
)

// mustEncode is AppendEntry for an entry that its format can carry.
func mustEncode(t testing.TB, e *record.Entry) []byte {
	t.Helper()
	b, err := record.AppendEntry(nil, e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fullEntry has a change of every kind.
func fullEntry() *record.Entry {
	large := recordtest.FullJob()
	large.Seq, large.Body = 78, bytes.Repeat([]byte("x"), record.InlineBytes+1)
	return &record.Entry{
		Position: record.Position{
			Format: record.NewestFormat, Epoch: 3, Number: 1000, At: 1_790_000_000_000_000, Chain: 1 << 63,
		}, Prev: 998,
		Batch: &record.CommitBatch{
			Changes: []record.Change{
				{
					Seq: 77, Job: recordtest.FullJob(), Status: recordtest.FullStatus(),
					Failure: recordtest.FullFailure(),
					Outcome: recordtest.FullOutcome(),
					Timeline: []record.TimelineSlot{
						{Slot: 7, Entry: *recordtest.FullTimelineEntry()}, {Slot: core.MaxTimeline},
					},
				},
				{Seq: 78, Job: large, Stored: record.Rewritten | record.HasBody, BodyBytes: 5, KeepBody: true},
				{Seq: 79, Gone: true, Stored: record.HasStatus | record.HasFailure, BodyBytes: 4096, TimelineSlots: 8},
			},
			Meta: []core.MetaEntry{
				{Name: "a", Value: []byte("b")}, {Name: "empty", Value: []byte{}}, {Name: "gone"},
			},
			Documents: []core.MetaEntry{{Name: "d/1", Value: []byte("text")}, {Name: "d/gone"}},
		},
	}
}

func TestEntriesAreReadBack(t *testing.T) {
	t.Parallel()
	for _, want := range []*record.Entry{fullEntry(), {
		Position: record.Position{Number: 1},
		Batch:    &record.CommitBatch{Changes: []record.Change{}, Meta: []core.MetaEntry{}},
	}, {
		Position: record.Position{Format: 2, Number: 1},
		Batch:    &record.CommitBatch{Changes: []record.Change{}, Meta: []core.MetaEntry{}},
	}} {
		b := mustEncode(t, want)
		if first := byte(max(want.Format, 1)); b[0] != first {
			t.Errorf("the entry begins with %d, its format is %d", b[0], first)
		}
		got, err := record.DecodeEntry(b)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, got, want)
		for n := range b {
			if _, err := record.DecodeEntry(b[:n]); !record.IsInvalid(err) {
				t.Fatalf("entry of %d bytes, cut at %d: %v", len(b), n, err)
			}
		}
		if _, err := record.DecodeEntry(append([]byte{record.NewestFormat + 1}, b[1:]...)); !errors.Is(err,
			record.ErrNewerFormat) {
			t.Errorf("newer version: %v", err)
		}
	}
}

// The encoding must not change, because members of a cluster that are not upgraded yet read it.
func TestEncodingOfEntriesIsKept(t *testing.T) {
	t.Parallel()
	e := &record.Entry{Position: record.Position{Epoch: 3, Number: 1000, At: 2}, Prev: 998, Batch: &record.CommitBatch{
		Changes: []record.Change{
			{
				Seq: 5, Job: &core.Job{Seq: 5, Queue: "q", Type: "q", Body: []byte("b")},
				Status: &record.Status{State: core.Leased},
			},
			{Seq: 4, Gone: true, Stored: record.HasStatus, BodyBytes: 9},
		},
		Meta: []core.MetaEntry{{Name: "a", Value: []byte("b")}, {Name: "c"}},
	}}
	wantHex(t, "entry", mustEncode(t, e),
		"0103e80704020000000000000000020"+"50a0000050101017162030100040401010902016101016201630"+"0")
}

func TestEntriesFollowOneAnother(t *testing.T) {
	t.Parallel()
	last := record.Position{Epoch: 2, Number: 10}
	for name, c := range map[string]struct {
		epoch, prev, number uint64
		follows             bool
	}{
		"next":                      {2, 10, 11, true},
		"after some without change": {2, 10, 15, true},
		"of a new epoch":            {3, 10, 11, true},
		"again":                     {2, 9, 10, false},
		"one is missing":            {2, 11, 12, false},
		"of an engine replaced":     {1, 10, 11, false},
		"no later":                  {2, 10, 10, false},
	} {
		e := record.Entry{Position: record.Position{Epoch: c.epoch, Number: c.number}, Prev: c.prev}
		if e.Follows(last) != c.follows {
			t.Errorf("%s: %v", name, !c.follows)
		}
	}
}

// FuzzEntry: no input makes the decoder panic, and accepted input is encoded and decoded unchanged.
func FuzzEntry(f *testing.F) {
	f.Add(mustEncode(f, fullEntry()))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := record.DecodeEntry(b)
		if err != nil {
			return
		}
		once, err := record.AppendEntry(nil, e)
		if errors.Is(err, record.ErrOldFormat) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		again, err := record.DecodeEntry(once)
		if err != nil {
			t.Fatal(err)
		}
		if twice := mustEncode(t, again); !reflect.DeepEqual(once, twice) {
			t.Errorf("%x is written as %x, then as %x", b, once, twice)
		}
	})
}
