package console

import (
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"broker/operate/service"
)

// seriesRange is a time span of charts.
type seriesRange struct {
	name, label, step string
	span              time.Duration
	per               int // points of the series per point of a chart
}

var seriesRanges = []seriesRange{
	{"30m", "30 min", "2s", 30 * time.Minute, 5},
	{"24h", "24 h", "1m", 24 * time.Hour, 8},
	{"30d", "30 days", "1h", 30 * 24 * time.Hour, 4},
}

// leastChart is the minimum number of points of a chart if the series has them.
const leastChart = 60

// chart is the data for the page's script.
type chart struct {
	Title, Summary string
	Data           chartData
}

type chartData struct {
	Labels  []string    `json:"labels"`
	Colours []string    `json:"colours"` // custom properties of the style sheet
	Unit    string      `json:"unit,omitempty"`
	Whole   bool        `json:"whole,omitempty"`  // values are counts
	X       []int64     `json:"x"`                // seconds since 1970
	Marks   []chartMark `json:"marks,omitempty"`  // vertical lines
	Jobs    string      `json:"jobs,omitempty"`   // URL for the jobs of a selected span, which the script appends
	Select  string      `json:"select,omitempty"` // the time that the span is of; empty: created
	Y       [][]float64 `json:"y"`
}

// chartMark marks an event in a chart.
type chartMark struct {
	X    int64  `json:"x"`
	Text string `json:"text"`
}

// chartsOf returns the charts of a queue, or of all queues if it is empty, with marks and links to the jobs. ready and
// running are the counts that the page shows elsewhere, for the heads.
func (h *history) chartsOf(queue string, marks []chartMark, ready, running int) []chart {
	charts := slices.Clone(h.charts) // other tabs share them
	query := url.Values{}
	if queue != "" {
		query.Set("queue", queue)
	}
	for i := range charts {
		charts[i].Data.Marks, charts[i].Data.Jobs = marks, "jobs?"+query.Encode()
	}
	if len(charts) > 0 {
		charts[0].Summary = float(h.pace.in) + " in, " + float(h.pace.done) + " done, " + float(h.pace.failed) +
			" failed a second"
		charts[1].Summary = num(ready) + " ready, " + num(running) + " running"
	}
	return charts
}

// maxMarks limits the marks of a chart. The latest are shown.
const maxMarks = 100

// marks returns the marks for the charts of a queue, or of all queues if it is empty: the start of the broker, if the
// caller may see it, and changes.
func (r *request) marks(queue string, within time.Duration) (marks []chartMark) {
	from := r.console.options.Now().Add(-within)
	// otherwise the caller may see some queues only
	if sum, err := r.service.Summary(r.Context(), r.caller); err == nil && !sum.StartedAt.Before(from) {
		text := "broker started"
		if r.console.options.Cluster != nil {
			text = "a node began to lead"
		}
		marks = append(marks, chartMark{sum.StartedAt.Unix(), text})
	}
	changes, err := r.service.Marks(r.caller, queue, from)
	if err != nil {
		return marks // the caller may not see them
	}
	for i := range changes {
		marks = append(marks, chartMark{changes[i].At.Unix(), markText(&changes[i])})
	}
	return marks[max(0, len(marks)-maxMarks):]
}

// markText describes a change and names its author.
func markText(e *service.AuditEntry) string {
	kind, what, _ := strings.Cut(e.Action, ".")
	text := e.Action
	switch kind {
	case "queue":
		text = map[string]string{"pause": "paused ", "resume": "resumed "}[what] + short(60, e.Target)
	case "jobs":
		text += ", " + plural(e.Jobs, "job")
	case "worker":
		text = map[string]string{
			"quiet": "quieted ", "terminate": "terminated ", "disconnect": "disconnected ",
		}[what] + short(60, e.Target)
	case service.ActionMark:
		text = short(80, e.Target)
	case "cluster":
		text = "the lead was given to " + e.Target
	}
	if e.Who != anonymous {
		text += " by " + e.Who
	}
	return text
}

// history is the recent history of one queue or all queues, for charts and spark lines.
type history struct {
	charts                             []chart
	pace                               pace
	sparkIn, sparkDone, sparkFailed    template.HTML
	sparkReady, sparkLeased, sparkWait template.HTML
}

// pace is how fast jobs came and ended in the last minute, whichever span the charts show.
type pace struct {
	in, done, failed float64 // a second
	waitP95, runP95  float64 // in seconds
}

// histories caches histories, because many tabs show the same one.
type histories struct {
	mu     sync.Mutex // guards byName
	byName map[string]keptHistory
}

type keptHistory struct {
	at      time.Time
	history *history
}

// historyFor is how long a history is cached. keptHistories limits the number of cached histories.
const (
	historyFor    = 2 * time.Second
	keptHistories = 200
)

// history returns the history of a queue, or of all queues if queue is empty.
func (r *request) history(queue string) (*history, seriesRange, error) {
	chosen := seriesRanges[0]
	for _, s := range seriesRanges {
		if s.name == r.query.Get("range") {
			chosen = s
		}
	}
	now := r.console.options.Now()
	if _, err := r.service.Series(r.Context(), r.caller,
		service.SeriesQuery{Queue: queue, Step: chosen.step, From: now}); err != nil {
		return nil, chosen, err // the caller may not see it
	}
	latest, err := r.historyOf(queue, seriesRanges[0])
	if err != nil || chosen == seriesRanges[0] {
		return latest, chosen, err
	}
	kept, err := r.historyOf(queue, chosen)
	if err != nil {
		return nil, chosen, err
	}
	h := *kept // a copy, because all tabs share the cached history
	h.pace = latest.pace
	return &h, chosen, nil
}

// historyOf is the history of one span of time.
func (r *request) historyOf(queue string, chosen seriesRange) (*history, error) {
	now, key, kept := r.console.options.Now(), chosen.name+" "+queue, &r.console.histories
	kept.mu.Lock()
	known, ok := kept.byName[key]
	kept.mu.Unlock()
	if ok && now.Sub(known.at) < historyFor {
		return known.history, nil
	}
	series, err := r.service.Series(r.Context(), r.caller,
		service.SeriesQuery{Queue: queue, Step: chosen.step, From: now.Add(-chosen.span)})
	if err != nil {
		return nil, err
	}
	h := newHistory(series, chosen.per)
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if len(kept.byName) >= keptHistories || kept.byName == nil {
		kept.byName = map[string]keptHistory{}
	}
	kept.byName[key] = keptHistory{now, h}
	return h, nil
}

// newHistory makes charts of a series. per is the number of points of the series per point of a chart.
func newHistory(s *service.Series, per int) *history {
	h := &history{}
	points := s.Points
	if s.From == nil || len(points) == 0 {
		return h
	}
	from := *s.From
	step := time.Duration(s.StepS * float64(time.Second))
	quiet := 0 // points at the beginning without any job
	for quiet < len(points)-leastChart && points[quiet] == (service.Point{}) {
		quiet++
	}
	points, from = points[quiet:], from.Add(time.Duration(quiet)*step)
	if len(points) < 6*leastChart {
		per = max(1, len(points)/leastChart)
	}
	first := len(points) % per
	points, from = points[first:], from.Add(time.Duration(first)*step)
	var x []int64
	var columns [5][]float64 // in, done, failed, ready, running
	var waits, runs [3][]float64
	for i := 0; i < len(points); i += per {
		part := points[i : i+per]
		last := part[len(part)-1]
		var sum service.Point
		for _, p := range part {
			sum.Submitted, sum.Done, sum.Failed = sum.Submitted+p.Submitted, sum.Done+p.Done, sum.Failed+p.Failed
			sum.WaitP50S, sum.WaitP95S, sum.WaitP99S = max(sum.WaitP50S,
				p.WaitP50S), max(sum.WaitP95S, p.WaitP95S), max(sum.WaitP99S, p.WaitP99S)
			sum.RunP50S, sum.RunP95S, sum.RunP99S = max(sum.RunP50S,
				p.RunP50S), max(sum.RunP95S, p.RunP95S), max(sum.RunP99S, p.RunP99S)
		}
		x = append(x, from.Add(time.Duration(i+per)*step).Unix())
		seconds := s.StepS * float64(per)
		for k, v := range []float64{
			float64(sum.Submitted) / seconds, float64(sum.Done) / seconds, float64(sum.Failed) / seconds,
			float64(last.Ready), float64(last.Leased),
		} {
			columns[k] = append(columns[k], round(v))
		}
		for k, v := range []float64{sum.WaitP50S, sum.WaitP95S, sum.WaitP99S} {
			waits[k] = append(waits[k], round(v))
		}
		for k, v := range []float64{sum.RunP50S, sum.RunP95S, sum.RunP99S} {
			runs[k] = append(runs[k], round(v))
		}
	}
	in, done, failed, ready, running := columns[0], columns[1], columns[2], columns[3], columns[4]
	h.pace = paceOf(s.Points, s.StepS)
	h.sparkIn, h.sparkDone, h.sparkFailed = spark(in, ""), spark(done, "good"), spark(failed, "bad")
	h.sparkReady, h.sparkLeased, h.sparkWait = spark(ready, ""), spark(running, ""), spark(waits[1], "")
	quantiles, colours := []string{"p50", "p95", "p99"}, []string{"--good", "--in", "--warn"}
	h.charts = []chart{
		{"Throughput", "", chartData{
			Labels: []string{"in", "done", "failed"}, Colours: []string{"--in", "--good", "--bad"}, X: x,
			Y: [][]float64{in, done, failed},
		}},
		{"Jobs", "", chartData{
			Labels: []string{"ready", "running"}, Colours: []string{"--in", "--cyan"}, Whole: true, X: x,
			Y: [][]float64{ready, running},
		}},
		{
			"Wait", "from ready to a worker",
			chartData{Labels: quantiles, Colours: colours, Unit: "s", X: x, Y: waits[:]},
		},
		{
			"Run", "from a worker to the end",
			chartData{Labels: quantiles, Colours: colours, Unit: "s", X: x, Y: runs[:]},
		},
	}
	return h
}

// paceOf measures the last minute.
func paceOf(points []service.Point, stepS float64) (m pace) {
	n := min(max(1, int(60/stepS)), len(points))
	seconds := float64(n) * stepS
	for _, p := range points[len(points)-n:] {
		m.in += float64(p.Submitted) / seconds
		m.done += float64(p.Done) / seconds
		m.failed += float64(p.Failed) / seconds
		m.waitP95, m.runP95 = max(m.waitP95, p.WaitP95S), max(m.runP95, p.RunP95S)
	}
	return m
}

// round drops digits that a chart cannot show, so that pages stay small.
func round(v float64) float64 {
	switch {
	case v == 0:
		return 0
	case v >= 1000:
		return float64(int64(v + 0.5))
	case v >= 1:
		return float64(int64(v*100+0.5)) / 100
	}
	return float64(int64(v*1e6+0.5)) / 1e6
}

// maxSpark limits the number of points of a spark line.
const maxSpark = 40

// spark draws values as a small line.
func spark(values []float64, class string) template.HTML {
	if len(values) < 2 {
		return ""
	}
	if len(values) > maxSpark {
		values = values[len(values)-maxSpark:]
	}
	largest := 0.0
	for _, v := range values {
		largest = max(largest, v)
	}
	if largest == 0 {
		return ""
	}
	var points []byte
	for i, v := range values {
		points = strconv.AppendFloat(points, 100*float64(i)/float64(len(values)-1), 'g', 4, 64)
		points = append(points, ',')
		points = strconv.AppendFloat(points, 22-20*v/largest, 'g', 3, 64)
		points = append(points, ' ')
	}
	line := string(points)
	return template.HTML(`<svg class="spark ` + class +
		`" viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true"><polygon points="0,24 ` +
		line + `100,24"/><polyline points="` + line + `"/></svg>`)
}

// ranges returns the links to the time spans of charts.
func (r *request) ranges(chosen seriesRange) (list []choice) {
	for _, s := range seriesRanges {
		list = append(list,
			choice{Value: s.name, Label: s.label, URL: with(r.query, "range", s.name), Chosen: s.name == chosen.name})
	}
	return list
}
