package importer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Source is a server whose jobs are moved.
type Source interface {
	// Count counts the jobs of the source.
	Count() ([]Count, error)
	// Paused lists the queues that the importer knows to be paused.
	Paused() ([]string, error)
	// Move moves one batch and returns the moved jobs, also with an error. An empty batch without an error means that
	// no more jobs can be moved now.
	Move(ctx context.Context) (Batch, error)
	// Finish waits for jobs in progress, and returns jobs that could not be moved to the source.
	Finish(ctx context.Context) error
	// Reason explains why jobs of a queue and state may stay at the source.
	Reason(queue, state string) string
	// Only limits the import to these queues. It is called first.
	Only(queues []string)
	Close()
}

// selection holds the queues to move; empty: all.
type selection []string

// Only implements Source.
func (s *selection) Only(queues []string) { *s = queues }

func (s selection) has(queue string) bool { return len(s) == 0 || slices.Contains(s, queue) }

// others explains counts over all queues together.
func (s selection) others(reason string) string {
	if len(s) > 0 {
		return "may be of other queues; " + reason
	}
	return reason
}

// Batch is the result of one step of an import.
type Batch struct {
	Moved   []Count
	Refused []Refused
}

func (b *Batch) empty() bool { return len(b.Refused) == 0 && b.jobs() == 0 }

// jobs is the number of moved jobs.
func (b *Batch) jobs() int {
	n := 0
	for _, c := range b.Moved {
		n += c.Jobs
	}
	return n
}

// batchJobs and batchBytes limit a batch. A single larger job is a separate batch.
const (
	batchJobs  = 256
	batchBytes = 8 << 20
)

// window is the number of jobs in the next batch.
type window int

const firstWindow window = 16

// adapt grows or shrinks the window after a batch of so many bytes.
func (w *window) adapt(bytes int) {
	switch {
	case bytes > batchBytes:
		*w = max(1, *w/4)
	case bytes < batchBytes/4:
		*w = min(batchJobs, *w*2)
	}
}

// followPause is the time between two checks of a source without jobs to move.
const followPause = time.Second

// finishWithin limits how long an interrupted import waits for jobs in progress. Without the wait, a foreground job
// would run again at the source.
const finishWithin = 30 * time.Second

// maxRefusals is the number of refusals in a row that stops the import. The broker then probably refuses all jobs, for
// example because its disk is full.
const maxRefusals = 1000

// ErrLeft means that the import has ended but jobs are left at the source.
var ErrLeft = errors.New("jobs are left at the source")

// Options of an import.
type Options struct {
	Follow      bool                    // continue until ctx ends
	SkipRefused bool                    // refused jobs are expected
	Refused     func(Refused) error     // called for each job that this broker has refused
	Progress    func(moved, before int) // after each batch
	Pause       func(context.Context, time.Duration)
}

// Look reports the jobs of a source without moving any. Rows of jobs that an import of this kind cannot move have a
// reason.
func Look(s Source) (Report, error) {
	var t tally
	counts, err := s.Count()
	if err != nil {
		return Report{}, atSource(err)
	}
	paused, err := s.Paused()
	t.add(counts, func(r *Row, n int) { r.Before += n; r.Left += n })
	if limited, is := s.(interface {
		staying(queue, state string) string
	}); is {
		for _, row := range t.rows {
			row.Reason = limited.staying(row.Queue, row.State)
		}
	}
	r := t.report()
	r.Paused = paused
	return r, atSource(err)
}

// Run moves all jobs of a source. Even with an error, the report shows all jobs moved so far. With Follow, the end of
// ctx is not an error.
func Run(ctx context.Context, s Source, o Options) (Report, error) {
	var t tally
	before, err := s.Count()
	if err != nil {
		return Report{}, atSource(err)
	}
	paused, err := s.Paused()
	if err != nil {
		return Report{}, atSource(err)
	}
	t.add(before, func(r *Row, n int) { r.Before += n })
	err = move(ctx, s, o, &t)
	if err == nil || ctx.Err() != nil {
		finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishWithin)
		if ctx.Err() == nil {
			finish = ctx
		}
		err = errors.Join(err, s.Finish(finish))
		cancel()
	}
	if o.Follow && ctx.Err() != nil {
		err = nil
	}
	left, countErr := s.Count()
	if countErr != nil {
		r := t.report()
		r.forgetLeft()
		if err == nil { // otherwise the source is gone, and err has said so
			err = atSource(countErr)
		}
		return r, err
	}
	t.add(left, func(r *Row, n int) { r.Left += n })
	for _, row := range t.rows {
		explain(s, row, err != nil)
	}
	later, pausedErr := s.Paused()
	r := t.report()
	r.Paused = slices.Compact(slices.Sorted(slices.Values(append(paused, later...))))
	err = errors.Join(err, pausedErr)
	if err == nil && !o.complete(&r) {
		err = ErrLeft
	}
	return r, err
}

// Reasons why jobs are left after an import that has failed. Until its connection is closed, the source counts the
// jobs that it had taken as jobs of a worker.
const (
	reasonFailed      = "the import ended before it moved them: import again"
	reasonFailedTaken = "with workers, or taken by this import, which gives them back: import again"
)

// explain sets the reason why jobs of a row are left. failed: the import has ended with an error.
func explain(s Source, r *Row, failed bool) {
	var reasons []string
	if r.Refused > 0 {
		reasons = append(reasons, fmt.Sprintf("%d refused by this broker", r.Refused))
	}
	switch {
	case r.Left <= r.Refused:
	case failed && r.State == Leased:
		reasons = append(reasons, reasonFailedTaken)
	case failed:
		reasons = append(reasons, reasonFailed)
	default:
		reasons = append(reasons, s.Reason(r.Queue, r.State))
	}
	r.Reason = strings.Join(slices.DeleteFunc(reasons, func(s string) bool { return s == "" }), ", ")
}

// complete reports whether all jobs have been moved. With Follow, jobs may be left, because producers still submit to
// the source.
func (o *Options) complete(r *Report) bool {
	expected := 0
	if o.SkipRefused {
		expected = r.Refused
	}
	if o.Follow {
		return r.Refused <= expected
	}
	return r.Left <= expected
}

// finishing is a context that ends finishWithin later than ctx, so that a started batch can finish.
func finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(finishWithin, cancel) })
	return later, func() {
		stop()
		cancel()
	}
}

func move(ctx context.Context, s Source, o Options, t *tally) error {
	begun, cancel := finishing(ctx) // otherwise jobs of half a batch would be on both sides
	defer cancel()
	inARow := 0
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		batch, err := s.Move(begun)
		err = atSource(err)
		t.add(batch.Moved, func(r *Row, n int) { r.Moved += n })
		if batch.jobs() > 0 {
			inARow = 0
		}
		for _, j := range batch.Refused {
			t.row(j.Queue, j.State).Refused++
			inARow++
			err = errors.Join(err, o.Refused(j))
			if inARow == maxRefusals {
				err = errors.Join(err,
					fmt.Errorf("this broker refused %d jobs in a row, the last one because: %s", inARow, j.Reason))
				break
			}
		}
		r := t.report()
		o.Progress(r.Moved, r.Before)
		switch {
		case err != nil:
			return err
		case !batch.empty():
		case !o.Follow:
			return nil
		default:
			o.Pause(ctx, followPause)
		}
	}
}
