package store

import (
	"bytes"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core/internal/record"
)

func TestJobIsReadWholeWhileItIsRewritten(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, vfs.NewMem())
	sizes := []int{record.InlineBytes + 1, 10, 5000, 0}
	mustCommit(t, s, record.Change{Seq: 1, Job: job(1, sizes[0])})
	done := make(chan struct{})
	go func() { // ends after so many commits; the test waits for it
		defer close(done)
		for n := range 2000 {
			old, j := sizes[n%len(sizes)], job(1, sizes[(n+1)%len(sizes)])
			ch := record.Change{Seq: 1, Stored: record.Rewritten, BodyBytes: old, Job: j}
			if err := s.Commit(&record.CommitBatch{Changes: []record.Change{ch}}); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		j, err := s.Job(1)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(j.Body, job(1, len(j.Body)).Body) {
			t.Fatalf("a body of %d bytes is another job's", len(j.Body))
		}
	}
}
