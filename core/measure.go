package core

import "time"

// Step is the length of time that a point of a series stands for.
type Step uint8

// Half an hour is kept in steps of two seconds, a day in minutes, and 30 days in hours.
const (
	Step2s Step = iota
	Step1m
	Step1h
)

// Steps lists all of them.
var Steps = [...]Step{Step2s, Step1m, Step1h}

// Span is the length of a step.
func (s Step) Span() time.Duration {
	return [...]time.Duration{2 * time.Second, time.Minute, time.Hour}[s]
}

// Points is how many points of that step are kept.
func (s Step) Points() int { return [...]int{900, 1440, 720}[s] }

// MaxDetailed is how many queues have series and histograms of their own: the busiest. Those of all others are summed.
const MaxDetailed = 1000

// ReadSeries asks for what happened in a queue, or in all of them together, over time. Series are kept over restarts; a
// crash may lose the last ten minutes. Reply: Answered with Series, which has no points if the queue is not one of the
// MaxDetailed busiest; or Failed with ErrInvalid for an unknown step.
type ReadSeries struct {
	reading
	Tag   uint64
	Queue string // empty: all
	Rest  bool   // all queues that have no series of their own
	Step  Step
	From  Instant // earlier points are left out; zero: all that are kept
}

// Series are the points of a queue, one for each step from From on, up to the last complete one.
type Series struct {
	Step   Step
	From   Instant // the beginning of the first point
	Points []Point
}

// Point is what happened in a queue in one step. OldestAge of all queues together is that of the busiest ones.
type Point struct {
	Submitted, Done, Failed   uint64
	Ready, Leased             int           // at its end
	OldestAge                 time.Duration // of the ready job that has waited longest, at its end
	WaitP50, WaitP95, WaitP99 time.Duration // from ready to leased
	RunP50, RunP95, RunP99    time.Duration // from leased to done or failed
}

// ReadHistograms asks how long jobs have waited and run since the process started: those of a queue, of a type, or all.
// Reply: Answered with Histograms, which are nil if the queue or type is not one of the MaxDetailed.
type ReadHistograms struct {
	reading
	Tag   uint64
	Queue string // empty: all
	Type  string // of any queue, if it differs from the queue's name; Queue must be empty
	Rest  bool   // all queues that have no histograms of their own
}

// Histograms are how long jobs have waited from ready to leased, and run from leased to done or failed.
type Histograms struct{ Wait, Run *Histogram }

// The TagOf methods.

func (o *ReadSeries) TagOf() uint64     { return o.Tag }
func (o *ReadHistograms) TagOf() uint64 { return o.Tag }
