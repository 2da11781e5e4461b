package service

import (
	"context"
	"time"

	"broker/core"
)

// Series is a time series of a queue, or of all queues.
type Series struct {
	Queue  string     `json:"queue,omitempty" doc:"none: all queues together"`
	StepS  float64    `json:"step_s" doc:"time that a point covers"`
	From   *time.Time `json:"from,omitempty" doc:"the beginning of the first point"`
	Points []Point    `json:"points" doc:"one for each step, without gaps, up to the last complete one"`
}

// Point holds the counts of one step.
type Point struct {
	Submitted  uint64  `json:"submitted"`
	Done       uint64  `json:"done"`
	Failed     uint64  `json:"failed"`
	Ready      int     `json:"ready" doc:"at the end of the step"`
	Leased     int     `json:"leased" doc:"at the end of the step"`
	OldestAgeS float64 `json:"oldest_age_s" doc:"of the ready job that has waited longest, at the end of the step"`
	WaitP50S   float64 `json:"wait_p50_s" doc:"from ready to leased"`
	WaitP95S   float64 `json:"wait_p95_s"`
	WaitP99S   float64 `json:"wait_p99_s"`
	RunP50S    float64 `json:"run_p50_s" doc:"from leased to done or failed"`
	RunP95S    float64 `json:"run_p95_s"`
	RunP99S    float64 `json:"run_p99_s"`
}

// SeriesQuery selects a series.
type SeriesQuery struct {
	Queue string    // empty: all
	Step  string    // 2s, 1m or 1h; empty: 1m
	From  time.Time // earlier points are left out
}

var seriesSteps = map[string]core.Step{"2s": core.Step2s, "1m": core.Step1m, "1h": core.Step1h, "": core.Step1m}

// Series returns a time series.
func (s *Service) Series(ctx context.Context, caller Caller, q SeriesQuery) (*Series, error) {
	if err := caller.mayRead(q.Queue); err != nil {
		return nil, err
	}
	step, ok := seriesSteps[q.Step]
	if !ok {
		return nil, invalid("step", "step must be 2s, 1m or 1h")
	}
	c := s.open(caller)
	defer c.Close()
	r, err := c.call(ctx, &core.ReadSeries{Queue: q.Queue, Step: step, From: core.InstantOf(q.From)})
	if err != nil {
		return nil, err
	}
	v := &Series{Queue: text(q.Queue), StepS: step.Span().Seconds(), Points: []Point{}}
	if r.Series == nil || len(r.Series.Points) == 0 {
		return v, nil
	}
	v.From = timeOf(r.Series.From)
	for _, p := range r.Series.Points {
		v.Points = append(v.Points, Point{
			Submitted: p.Submitted, Done: p.Done, Failed: p.Failed, Ready: p.Ready, Leased: p.Leased,
			OldestAgeS: p.OldestAge.Seconds(),
			WaitP50S:   p.WaitP50.Seconds(), WaitP95S: p.WaitP95.Seconds(), WaitP99S: p.WaitP99.Seconds(),
			RunP50S: p.RunP50.Seconds(), RunP95S: p.RunP95.Seconds(), RunP99S: p.RunP99.Seconds(),
		})
	}
	return v, nil
}

// Histograms are the wait and run times of jobs since the broker started.
type Histograms struct {
	Queue string     `json:"queue,omitempty"`
	Type  string     `json:"type,omitempty"`
	Wait  *Histogram `json:"wait" doc:"from ready to leased"`
	Run   *Histogram `json:"run" doc:"from leased to done or failed"`
}

// Histogram counts durations.
type Histogram struct {
	Count   uint64   `json:"count"`
	SumS    float64  `json:"sum_s"`
	P50S    float64  `json:"p50_s"`
	P95S    float64  `json:"p95_s"`
	P99S    float64  `json:"p99_s"`
	Buckets []Bucket `json:"buckets" doc:"buckets with counts, in rising order"`
}

// Bucket counts the durations from FromS to less than ToS.
type Bucket struct {
	FromS float64 `json:"from_s"`
	ToS   float64 `json:"to_s"`
	Count uint64  `json:"count"`
}

// Histograms returns the wait and run times of jobs of a queue, of a type, or of all.
func (s *Service) Histograms(ctx context.Context, caller Caller, queue, jobType string) (*Histograms, error) {
	if err := caller.mayRead(queue); err != nil {
		return nil, err
	}
	if queue != "" && jobType != "" {
		return nil, invalid("type", "queue and type exclude each other")
	}
	c := s.open(caller)
	defer c.Close()
	r, err := c.call(ctx, &core.ReadHistograms{Queue: queue, Type: jobType})
	if err != nil {
		return nil, err
	}
	v := &Histograms{
		Queue: text(queue), Type: text(jobType), Wait: &Histogram{Buckets: []Bucket{}},
		Run: &Histogram{Buckets: []Bucket{}},
	}
	if r.Answer != nil && r.Histograms.Wait != nil {
		v.Wait, v.Run = histogramOf(r.Histograms.Wait), histogramOf(r.Histograms.Run)
	}
	return v, nil
}

func histogramOf(h *core.Histogram) *Histogram {
	var at [3]time.Duration
	h.Quantiles(at[:], 0.5, 0.95, 0.99)
	v := &Histogram{
		Count: h.Count(), SumS: h.Sum().Seconds(), P50S: at[0].Seconds(), P95S: at[1].Seconds(), P99S: at[2].Seconds(),
		Buckets: []Bucket{},
	}
	for _, b := range h.Buckets() {
		v.Buckets = append(v.Buckets, Bucket{FromS: b.From.Seconds(), ToS: b.To.Seconds(), Count: b.Count})
	}
	return v
}
