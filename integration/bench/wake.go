package main

import (
	"fmt"
	"io"
	"time"
)

const (
	settleTime = time.Second     // for all workers to fall asleep
	quietTime  = 3 * time.Second // in which the sleepers' own cost is taken; Faktory's ask again every 2 s
)

// wakeUp is the cost of handing one job to one of many sleeping workers.
type wakeUp struct {
	sleepers int
	stepCost         // of wake-ups; latency from the submission to the job in a worker's hands
	asleep   float64 // processor micros a second while nothing happens
}

// wakeUps increases the number of workers that wait for one queue, and submits one job at a time.
func (l *lab) wakeUps(w io.Writer) error {
	out := grid{{
		"protocol", "durability", "sleepers", "wake-ups", "p50", "p99", "server µs/wake-up", "server µs/s asleep",
	}}
	for _, p := range l.protocols() {
		for _, durability := range l.durabilities {
			for _, n := range l.sleepers {
				wu, err := l.wakeUp(p, durability, n)
				if err != nil {
					return fmt.Errorf("%d sleepers over %s: %w", n, p.name, err)
				}
				l.facts.wakeUps = append(l.facts.wakeUps, wu)
				out = append(out, []string{
					p.name, durability, thousands(float64(n)), thousands(float64(l.wakes)), span(float64(wu.p50)),
					span(float64(wu.p99)), micros(wu.micros), thousands(wu.asleep),
				})
			}
		}
	}
	out.print(w)
	return nil
}

func (l *lab) wakeUp(p protocol, durability string, n int) (wakeUp, error) {
	wu := wakeUp{sleepers: n}
	s, end, err := l.open(p, durability)
	if err != nil {
		return wu, err
	}
	defer end()
	t := newTally(l.wakes)
	t.backlog = 1 // the next job only when the last one has been taken
	t.endless = true
	t.assigned = func(c *conn) { t.wakes.add(c.now - t.issuedAt) }
	const buffer = 16 << 10 // there may be thousands
	all, err := connectMany(s.addr, n, buffer, p.dialect, func() session { return p.dialect.worker(t) })
	if err != nil {
		return wu, err
	}
	defer all.close()
	if err := runFor(all, settleTime); err != nil {
		return wu, err
	}
	quiet, err := s.timed(1, func() (int64, error) { return 1, runFor(all, quietTime) })
	if err != nil {
		return wu, err
	}
	wu.asleep = quiet.micros / quietTime.Seconds()
	if err := all.add(s.addr, p.dialect.producer(t, 1), p.dialect.greet()); err != nil {
		return wu, err
	}
	var took int64
	wu.stepCost, err = s.timed(t.total, func() (int64, error) {
		begin := nanotime()
		err := runAlone(all, t.limit(), func() bool { return t.allDone() && t.allAcked() })
		took = nanotime() - begin
		return took, err
	})
	// Subtract the cost of the sleeping workers themselves.
	wu.micros -= wu.asleep * time.Duration(took).Seconds() / float64(t.total)
	wu.p50, wu.p99 = t.wakes.quantile(0.5), t.wakes.quantile(0.99)
	return wu, err
}

// runFor runs a loop for a duration.
func runFor(l *loop, d time.Duration) error {
	until := nanotime() + d.Nanoseconds()
	return runAlone(l, 2*d+runLimit, func() bool { return nanotime() >= until })
}
