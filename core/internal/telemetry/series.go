package telemetry

import (
	"math/bits"
	"time"

	"broker/core"
)

// A ring keeps the newest points of a series in blocks. Blocks without activity take no memory. A queue that has been
// busy for a month takes 110 KB.
type ring struct {
	blocks []*block // by block number modulo the number of blocks
	next   int64    // the step after the last written one
}

// blockPoints is how many points a block has. On disk.
const blockPoints = 60

// block holds the points of the steps from number*blockPoints on.
type block struct {
	number int64
	points [blockPoints]point
	dirty  bool // differs from the stored block
}

// point is a core.Point in 36 bytes.
type point struct {
	submitted, done, failed, ready, leased uint32

	oldest    uint16 // as spanCode
	wait, run [3]uint16
}

// quantiles are the quantiles of a point.
var quantiles = [3]float64{0.5, 0.95, 0.99}

func newRing(s core.Step) ring { return ring{blocks: make([]*block, s.Points()/blockPoints)} }

// slot returns the index for the block of a step.
func (r *ring) slot(step int64) int { return int(step / blockPoints % int64(len(r.blocks))) }

// set writes the point of a step.
func (r *ring) set(step int64, p point) {
	n := step / blockPoints
	b := r.blocks[r.slot(step)]
	if b == nil {
		b = &block{number: n}
		r.blocks[r.slot(step)] = b
	}
	if b.number != n {
		*b = block{number: n}
	}
	b.points[step%blockPoints] = p
	b.dirty = true
}

// at returns the point of a step.
func (r *ring) at(step int64) point {
	if b := r.blocks[r.slot(step)]; b != nil && b.number == step/blockPoints {
		return b.points[step%blockPoints]
	}
	return point{}
}

// spanBits is how many leading bits of a span a spanCode keeps, in addition to the first.
const spanBits = 10

// spanCode encodes a span in 16 bits, with an error below a thousandth. Below 1024 it is the number of microseconds.
// Otherwise it is the number of dropped bits plus one, and the first eleven bits without the highest. On disk.
func spanCode(us core.Instant) uint16 {
	if us < 1<<spanBits {
		return uint16(max(us, 0))
	}
	n := bits.Len64(uint64(us)) - spanBits - 1
	return uint16(n+1)<<spanBits | uint16(us>>n)&(1<<spanBits-1)
}

func spanOf(code uint16) time.Duration {
	us := int64(code)
	if n := code >> spanBits; n > 0 {
		us = (us&(1<<spanBits-1) | 1<<spanBits) << (n - 1)
	}
	return time.Duration(us) * time.Microsecond
}

// full returns the point in its public form.
func (p *point) full() core.Point {
	return core.Point{
		Submitted: uint64(p.submitted), Done: uint64(p.done), Failed: uint64(p.failed), Ready: int(p.ready),
		Leased:    int(p.leased),
		OldestAge: spanOf(p.oldest), WaitP50: spanOf(p.wait[0]), WaitP95: spanOf(p.wait[1]), WaitP99: spanOf(p.wait[2]),
		RunP50: spanOf(p.run[0]), RunP95: spanOf(p.run[1]), RunP99: spanOf(p.run[2]),
	}
}

// level holds the counts for the next point of one step length.
type level struct {
	submitted, done, failed uint32
	wait, run               core.Histogram
	dirty                   bool // there are new counts, or the gauges have changed
	ring                    ring
}

// add adds the counts of another level.
func (l *level) add(o *level) {
	l.submitted += o.submitted
	l.done += o.done
	l.failed += o.failed
	l.wait.Merge(&o.wait)
	l.run.Merge(&o.run)
}

// reset starts the next point.
func (l *level) reset() {
	l.submitted, l.done, l.failed, l.dirty = 0, 0, 0, false
	l.wait.Reset()
	l.run.Reset()
}

// Gauges are the contents of a queue at the end of its last step with an event. They stay valid until the next event.
type Gauges struct {
	Ready, Leased uint32
	OldestAt      core.Instant // when the oldest ready job became ready; zero: there is none
}

// point returns a point that ends at end, with only the gauges set.
func (g *Gauges) point(end core.Instant) point {
	p := point{ready: g.Ready, leased: g.Leased}
	if g.OldestAt != 0 {
		p.oldest = spanCode(end - g.OldestAt)
	}
	return p
}

// fill writes the points of the steps before step that had no activity, if the gauges were not zero.
func (l *level) fill(s core.Step, step int64, g *Gauges) {
	r := &l.ring
	if g.Ready == 0 && g.Leased == 0 {
		r.next = max(r.next, step)
	}
	for r.next = max(r.next, step-int64(s.Points())); r.next < step; r.next++ {
		r.set(r.next, g.point(core.Instant(r.next+1)*micros(s)))
	}
}

// closeStep writes the point of a step.
func (l *level) closeStep(s core.Step, step int64, g *Gauges) {
	p := g.point(core.Instant(step+1) * micros(s))
	p.submitted, p.done, p.failed = l.submitted, l.done, l.failed
	var at [3]time.Duration
	for _, q := range []struct {
		from *core.Histogram
		into *[3]uint16
	}{{&l.wait, &p.wait}, {&l.run, &p.run}} {
		if q.from.Count() > 0 {
			q.from.Quantiles(at[:], quantiles[:]...)
			for i, d := range at {
				q.into[i] = spanCode(core.Instant(d / time.Microsecond))
			}
		}
	}
	l.ring.set(step, p)
	l.ring.next = step + 1
}
