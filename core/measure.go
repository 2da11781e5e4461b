package core

import "time"

// Step is the time that one point of a series covers.
type Step uint8

// Half an hour is kept in steps of two seconds, a day in steps of a minute, and 30 days in steps of an hour.
const (
	Step2s Step = iota
	Step1m
	Step1h
)

// Steps lists all steps.
var Steps = [...]Step{Step2s, Step1m, Step1h}

// Span is the length of a step.
func (s Step) Span() time.Duration {
	return [...]time.Duration{2 * time.Second, time.Minute, time.Hour}[s]
}

// Points is how many points of that step are kept.
func (s Step) Points() int { return [...]int{900, 1440, 720}[s] }

// MaxDetailed is the maximum number of queues with series and histograms of their own: the busiest queues. The other
// queues share one sum.
const MaxDetailed = 1000

// ReadSeries requests the measurements of a queue, or of all queues together, over time. Series survive restarts; a
// crash may lose the last ten minutes. Reply: Answered with Series, which has no points if the queue is not one of the
// MaxDetailed busiest; or Failed with ErrInvalid for an unknown step.
type ReadSeries struct {
	reading
	Tag   uint64
	Queue string // empty: all
	Rest  bool   // all queues that have no series of their own
	Step  Step
	From  Instant // earlier points are left out; zero: all kept points
}

// Series are the points of a queue, one for each step from From on, up to the last complete one.
type Series struct {
	Step   Step
	From   Instant // the beginning of the first point
	Points []Point
}

// Point holds the measurements of a queue in one step. For all queues together, OldestAge covers only the busiest
// ones.
type Point struct {
	Submitted, Done, Failed   uint64
	Ready, Leased             int           // at its end
	OldestAge                 time.Duration // of the ready job that has waited longest, at its end
	WaitP50, WaitP95, WaitP99 time.Duration // from ready to leased
	RunP50, RunP95, RunP99    time.Duration // from leased to done or failed
}

// ReadHistograms requests how long jobs have waited and run since the process started: the jobs of a queue, of a type,
// or all jobs. Reply: Answered with Histograms, which are nil if the queue or type is not one of the MaxDetailed.
type ReadHistograms struct {
	reading
	Tag   uint64
	Queue string // empty: all
	Type  string // of any queue, if it differs from the queue's name; Queue must be empty
	Rest  bool   // all queues that have no histograms of their own
}

// Histograms count how long jobs have waited from ready to leased, and run from leased to done or failed.
type Histograms struct{ Wait, Run *Histogram }

// The TagOf methods.

func (o *ReadSeries) TagOf() uint64     { return o.Tag }
func (o *ReadHistograms) TagOf() uint64 { return o.Tag }
