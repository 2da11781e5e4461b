package store

import (
	"math"
	"strings"
	"testing"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/record/recordtest"
)

// wantSizeBounds fails if b takes more than its Size in the encoding of Pebble, or if the bound is of no use.
func wantSizeBounds(t *testing.T, what string, b *record.CommitBatch) {
	t.Helper()
	s := mustOpen(t, newDisk())
	pb := s.db.NewBatch()
	defer func() { _ = pb.Close() }() // never applied
	const header = 12
	if err := s.commit.encode(pb, b); err != nil {
		t.Fatal(err)
	}
	if got := pb.Len() - header; got > b.Size() {
		t.Errorf("%s takes %d bytes, more than %d", what, got, b.Size())
	} else if b.Size() > got+1024 {
		t.Errorf("%s takes %d bytes, far less than %d", what, got, b.Size())
	}
}

func TestSizeBoundsEveryChange(t *testing.T) {
	t.Parallel()
	extreme := recordtest.FullJob()
	extreme.Seq, extreme.CreatedAt, extreme.ReadyAt, extreme.ExpiresAt = math.MaxUint64, math.MinInt64, math.MaxInt64, math.MaxInt64
	extreme.Queue, extreme.ID = strings.Repeat("q", core.MaxQueueName), strings.Repeat("i", core.MaxIDBytes)
	large := recordtest.FullFailure()
	large.Data = make([]byte, 2*record.InlineBytes)
	outcome := recordtest.FullOutcome()
	outcome.Result, outcome.Failure = make([]byte, 2*record.InlineBytes), large
	everything := record.Change{
		Seq: 1, Job: job(1, 100), Status: recordtest.FullStatus(), Failure: recordtest.FullFailure(),
		Outcome: recordtest.FullOutcome(),
	}
	for what, ch := range map[string]record.Change{
		"a small job":     {Seq: 1, Job: job(1, 1)},
		"a large job":     {Seq: 1, Job: job(1, 100_000)},
		"an extreme job":  {Seq: math.MaxUint64, Job: extreme},
		"a rewritten job": {Seq: 1, Job: job(1, 1), Stored: record.Rewritten | record.HasBody},
		"a status":        {Seq: 1, Status: recordtest.FullStatus()},
		"a failure":       {Seq: 1, Failure: recordtest.FullFailure()},
		"a large failure": {Seq: 1, Failure: large},
		"a large outcome": {Seq: 1, Outcome: outcome},
		"everything":      everything,
		"a removal": {
			Seq: math.MaxUint64, Gone: true, Stored: math.MaxUint8, BodyBytes: core.MaxBodyBytes,
		},
	} {
		wantSizeBounds(t, what, &record.CommitBatch{Changes: []record.Change{ch}})
	}
	wantSizeBounds(t, "metadata", &record.CommitBatch{Meta: []core.MetaEntry{
		{Name: "name", Value: make([]byte, 5000)}, {Name: strings.Repeat("n", 600)},
	}})
}
