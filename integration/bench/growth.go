package main

import (
	"fmt"
	"io"
	"time"
)

// point is one measurement of a series: the jobs that wait beforehand, and the jobs that are measured.
type point struct {
	value      int
	waiting    shape
	waits      int
	jobs       shape
	measured   int
	inFlight   int
	backlog    int
	waitedCost stepCost
	cost       stepCost
	perWaiting float64 // resident bytes
}

// series is a quantity that grows from point to point.
type series struct {
	name   string
	values numbers
	point  func(n int, p *point)
}

func (l *lab) allSeries() []series {
	return []series{
		{"queues", l.queues, func(n int, p *point) {
			p.jobs.queues = queueNames(n)
			p.waiting, p.waits = p.jobs, n // one job stays in each, so that all queues are there all the time
		}},
		{"scheduled jobs waiting", l.scheduled, func(n int, p *point) {
			const far = 10 * 24 * time.Hour
			p.waiting, p.waits = p.jobs, n
			p.waiting.due = time.Now().Add(far).Unix()
		}},
		{"coalescing keys alive", l.keys, func(n int, p *point) {
			p.jobs.keyed = true
			p.waiting, p.waits = plainShape(), n
			p.waiting.keyed, p.waiting.queues = true, []string{"keyed"}
		}},
		{"payload bytes", l.payloads, func(n int, p *point) {
			const volume, ahead, flying = 512 << 20, 64 << 20, 4 << 20
			p.jobs.body = bodyOf(n)
			p.measured = max(min(p.measured, volume/n), 1)
			p.inFlight = max(min(p.inFlight, flying/n), 1)
			p.backlog = max(min(p.backlog, ahead/n), 4*usual.clients)
		}},
	}
}

// growth measures the cost of submitting, leasing and finishing a job as each quantity grows.
func (l *lab) growth(w io.Writer) error {
	for _, s := range l.allSeries() {
		out := grid{{
			"protocol", s.name, "server µs each to put them there", "resident B each", "jobs/s", "submit p50", "p99",
			"server µs/job", "against the first",
		}}
		for _, p := range l.protocols() {
			first := 0.0
			for _, n := range s.values {
				at := point{
					value: n, jobs: plainShape(), measured: max(l.jobs/2, 1), inFlight: 64, backlog: steadyBacklog,
				}
				s.point(n, &at)
				if err := l.at(p, &at); err != nil {
					return fmt.Errorf("%d %s over %s: %w", n, s.name, p.name, err)
				}
				if first == 0 {
					first = at.cost.micros
				}
				out = append(out, append([]string{p.name, thousands(float64(n))}, at.row(first)...))
			}
		}
		out.print(w)
		_, _ = fmt.Fprintln(w) // screen.Write handles errors
	}
	return nil
}

// at measures one point on a new broker.
func (l *lab) at(p protocol, at *point) error {
	s, end, err := l.open(p, l.durabilities[0])
	if err != nil {
		return err
	}
	defer end()
	if at.waits > 0 {
		before, err := s.resident()
		if err != nil {
			return err
		}
		if at.waitedCost, err = s.submit(&tally{loadSize: usual, total: at.waits, shape: at.waiting},
			at.inFlight); err != nil {
			return err
		}
		after, err := s.resident()
		if err != nil {
			return err
		}
		at.perWaiting = float64(after-before) / float64(at.waits)
	}
	at.cost, err = s.both(&tally{loadSize: usual, total: at.measured, shape: at.jobs, backlog: at.backlog}, at.inFlight)
	return err
}

func (at *point) row(first float64) []string {
	const telling = 1000 // processor time and memory of fewer jobs are mostly those of something else
	waited := []string{"", ""}
	if at.waits >= telling {
		waited = []string{micros(at.waitedCost.micros), thousands(at.perWaiting)}
	}
	return append(waited, thousands(at.cost.perSec), span(float64(at.cost.p50)), span(float64(at.cost.p99)),
		micros(at.cost.micros), fmt.Sprintf("%.2f×", at.cost.micros/first))
}
