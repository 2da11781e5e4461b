package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	// spreadOver is the number of queues in the measurements with many queues.
	spreadOver = 1000
	// firstLeases is the number of leases measured right after the start, with cold caches.
	firstLeases = 20_000
	// roomWait limits the wait for the store to shrink.
	roomWait = 2 * time.Minute
)

// depth is the result for one number of waiting jobs.
type depth struct {
	protocol                string
	queues, jobs            int
	submit, lease, drain    stepCost
	memory, disk            float64 // bytes a waiting job
	full                    int64   // resident bytes with all jobs waiting
	started                 int64   // and after the restart
	start                   time.Duration
	diskFull, diskLeft      int64
	roomBack                time.Duration
	roomMissing             bool
	residentBase, storeBase int64
}

// deepQueues fills, kills, starts, leases and drains, for every depth.
func (l *lab) deepQueues(w io.Writer) error {
	filled := grid{{
		"protocol", "queues", "jobs", "submits/s", "server µs", "resident B/job", "disk B/job", "start",
		"resident then", "B/job then",
	}}
	worked := grid{{
		"protocol", "queues", "jobs", "leases/s", "lease p50", "p99", "server µs", "drained/s", "server µs",
		"disk before", "after", "back in",
	}}
	for _, p := range l.protocols() {
		for _, queues := range []int{1, spreadOver} {
			for _, jobs := range l.deep {
				d, err := l.depth(p, queues, jobs)
				if err != nil {
					return fmt.Errorf("%d jobs in %d queues over %s: %w", jobs, queues, p.name, err)
				}
				l.facts.depths = append(l.facts.depths, d)
				id := []string{p.name, thousands(float64(queues)), thousands(float64(jobs))}
				filled = append(filled, append(id, d.filledRow()...))
				worked = append(worked, append(id[:3:3], d.workedRow()...))
			}
		}
	}
	filled.print(w)
	_, _ = fmt.Fprintln(w) // screen.Write handles errors
	worked.print(w)
	return nil
}

func (l *lab) depth(p protocol, queues, jobs int) (depth, error) {
	d := depth{protocol: p.name, queues: queues, jobs: jobs}
	s, end, err := l.open(p, "sync") // there is no start without a store
	if err != nil {
		return d, err
	}
	defer end()
	shape := plainShape()
	shape.queues = queueNames(queues)
	first := min(firstLeases, jobs/2)
	steps := []func() error{
		func() error { return d.baseline(s) },
		func() (err error) {
			d.submit, err = s.submit(&tally{loadSize: usual, total: jobs, shape: shape}, 64)
			return err
		},
		func() error { return d.fill(s) },
		func() (err error) { d.start, err = s.restart(); return err },
		func() (err error) { d.started, err = s.resident(); return err },
		func() (err error) {
			d.lease, err = s.work(&tally{
				loadSize: usual, total: first, shape: shape, workerTally: workerTally{hold: true},
			})
			return err
		},
		func() (err error) {
			d.drain, err = s.work(&tally{
				loadSize: usual, total: jobs - first, shape: shape, workerTally: workerTally{first: first},
			})
			return err
		},
		func() error { return d.awaitRoom(s) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return d, err
		}
	}
	return d, nil
}

func (d *depth) baseline(s *subject) (err error) {
	if d.residentBase, err = s.resident(); err != nil {
		return err
	}
	d.storeBase, err = s.diskBytes()
	return err
}

func (d *depth) fill(s *subject) (err error) {
	if d.full, err = s.resident(); err != nil {
		return err
	}
	if d.diskFull, err = s.diskBytes(); err != nil {
		return err
	}
	d.memory = float64(d.full-d.residentBase) / float64(d.jobs)
	d.disk = float64(d.diskFull-d.storeBase) / float64(d.jobs)
	return nil
}

// awaitRoom waits until the store has shrunk to a tenth of its size, or to the size of an empty store.
func (d *depth) awaitRoom(s *subject) (err error) {
	const small = 64 << 20
	begin := time.Now()
	for {
		if d.diskLeft, err = s.diskBytes(); err != nil {
			return err
		}
		d.roomBack = time.Since(begin)
		if d.diskLeft <= max(d.diskFull/10, small) {
			return nil
		}
		if d.roomBack > roomWait {
			d.roomMissing = true
			return nil
		}
		if s.Exited() {
			return errors.Join(os.ErrProcessDone, errors.New(s.Tail()))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (d *depth) filledRow() []string {
	return []string{
		thousands(d.submit.perSec), micros(d.submit.micros), thousands(d.memory), thousands(d.disk),
		seconds(d.start), mebibytes(d.started), thousands(float64(d.started-d.residentBase) / float64(d.jobs)),
	}
}

func (d *depth) workedRow() []string {
	back := seconds(d.roomBack)
	if d.roomMissing {
		back = "not in " + seconds(roomWait)
	}
	return []string{
		thousands(d.lease.perSec), span(float64(d.lease.p50)), span(float64(d.lease.p99)), micros(d.lease.micros),
		thousands(d.drain.perSec), micros(d.drain.micros), mebibytes(d.diskFull), mebibytes(d.diskLeft), back,
	}
}

func micros(v float64) string        { return fmt.Sprintf("%.1f", v) }
func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
func mebibytes(n int64) string       { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
