package store

import (
	"strings"
	"testing"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/record/recordtest"
)

// wantSizeBound fails if b takes more than bound in the encoding of Pebble, or if the bound is of no use.
func wantSizeBound(t *testing.T, what string, b *record.CommitBatch, bound int) {
	t.Helper()
	s := mustOpen(t, newDisk())
	pb := s.db.NewBatch()
	defer func() { _ = pb.Close() }() // never applied
	const header = 12
	if err := s.commit.encode(pb, b); err != nil {
		t.Fatal(err)
	}
	if got := pb.Len() - header; got > bound || bound > got+1024 {
		t.Errorf("%s takes %d bytes, with a bound of %d", what, got, bound)
	}
}

func TestSizesBoundWhatACommitTakes(t *testing.T) {
	t.Parallel()
	large := recordtest.FullFailure()
	large.Data = make([]byte, 2*record.InlineBytes)
	for _, f := range []*core.Failure{recordtest.FullFailure(), large} {
		wantSizeBound(t, "a failure", &record.CommitBatch{Changes: []record.Change{{Seq: 1, Failure: f}}},
			record.FailureSize(f))
	}
	outcome := recordtest.FullOutcome()
	outcome.Result, outcome.Failure = make([]byte, 2*record.InlineBytes), large
	for _, o := range []*core.Outcome{recordtest.FullOutcome(), outcome} {
		wantSizeBound(t, "an outcome", &record.CommitBatch{Changes: []record.Change{{Seq: 1, Outcome: o}}},
			record.OutcomeSize(o))
	}
	for _, m := range []core.MetaEntry{{Name: "name", Value: make([]byte, 5000)}, {Name: strings.Repeat("n", 600)}} {
		wantSizeBound(t, "metadata", &record.CommitBatch{Meta: []core.MetaEntry{m}}, record.MetaSize(&m))
	}
}
