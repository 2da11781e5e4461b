package console

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"broker/frontends/service"
)

// worstQueues is how many queues the overview shows.
const worstQueues = 8

type figure struct {
	Label, Value, Unit, Note, URL string
	Dot                           string // the state whose colour it has
	Bad                           bool
	Spark                         template.HTML
}

type overviewData struct {
	Marks     []mark
	Figures   []figure
	Charts    []chart
	Worst     []service.Queue
	Protocols []protocolRow
	Uptime    string
}

// mark is a word about the state of the broker.
type mark struct{ Class, Text string }

type protocolRow struct {
	Name            string
	Clients, Leased int
}

// chart is what the page's script draws.
type chart struct {
	Title, Summary string
	Data           chartData
}

type chartData struct {
	Labels  []string    `json:"labels"`
	Colours []string    `json:"colours"` // custom properties of the style sheet
	Unit    string      `json:"unit,omitempty"`
	X       []int64     `json:"x"` // seconds since 1970
	Y       [][]float64 `json:"y"`
}

func overviewPage(r *request) (*view, error) {
	sum, err := r.service.Summary(r.Context(), r.caller)
	if err != nil {
		return nil, err
	}
	d := &overviewData{Marks: marks(&sum), Figures: figures(&sum), Charts: dayCharts(sum.Days)}
	up := r.console.options.Now().Sub(sum.StartedAt)
	d.Uptime = span(up.Truncate(time.Second))
	for _, sort := range []string{"-dead", "-latency", "-ready"} {
		list, _, err := r.service.Queues(r.Context(), r.caller, service.QueueFilter{Sort: sort, Limit: worstQueues})
		if err != nil {
			return nil, err
		}
		for _, q := range list {
			known := slices.ContainsFunc(d.Worst, func(w service.Queue) bool { return w.Name == q.Name })
			if !known && len(d.Worst) < worstQueues && (q.Dead > 0 || q.Ready > 0 || q.Paused) {
				d.Worst = append(d.Worst, q)
			}
		}
	}
	for _, name := range []string{"workq", "gearman", "faktory", "http"} {
		d.Protocols = append(d.Protocols, protocolRow{Name: name, Clients: sum.Clients[name], Leased: sum.Leased[name]})
	}
	return &view{page: "overview", title: "Overview", data: d}, nil
}

func marks(sum *service.Summary) []mark {
	var all []mark
	if sum.Stopped {
		all = append(all, mark{"failed", "the store has failed"})
	}
	if sum.DiskFull {
		all = append(all, mark{"failed", "disk nearly full"})
	}
	if sum.Draining {
		all = append(all, mark{"draining", "draining"})
	}
	if len(all) == 0 {
		all = append(all, mark{"ok", "serving"})
	}
	return all
}

func figures(sum *service.Summary) []figure {
	state := func(label, name, url string, bad bool) figure {
		n := sum.Jobs[name]
		return figure{Label: label, Value: num(n), URL: url, Dot: name, Bad: bad && n > 0}
	}
	all := []figure{
		state("ready", "ready", "jobs?state=ready", false), state("running", "leased", "running", false),
		state("scheduled", "scheduled", "scheduled", false), state("blocked", "blocked", "jobs?state=blocked", false),
		state("retrying", "retrying", "retrying", false), state("dead", "dead", "dead", true),
		{Label: "submitted", Value: num(sum.Totals.Submitted), Note: "since the store was made"},
		{Label: "done", Value: num(sum.Totals.Done), Note: "since the store was made"},
		{Label: "failed", Value: num(sum.Totals.Failed), Note: failureRate(sum)},
	}
	return all
}

// failureRate is the part of all runs that failed.
func failureRate(sum *service.Summary) string {
	ends := sum.Totals.Done + sum.Totals.Failed
	if ends == 0 {
		return "of all runs"
	}
	return strconv.FormatFloat(100*float64(sum.Totals.Failed)/float64(ends), 'f', 2, 64) + " % of all runs"
}

// dayCharts shows finished jobs by day, the last 30 days; nothing while there is only one.
func dayCharts(days []service.Day) []chart {
	if len(days) < 2 {
		return nil
	}
	days = slices.Clone(days[:min(len(days), 30)])
	slices.Reverse(days)
	data := chartData{Labels: []string{"processed", "failed"}, Colours: []string{"--good", "--bad"}, Y: [][]float64{nil, nil}}
	var processed, failed uint64
	for _, day := range days {
		at, err := parseDay(day.Date)
		if err != nil {
			continue // never: the broker wrote it
		}
		data.X = append(data.X, at.Unix())
		data.Y[0] = append(data.Y[0], float64(day.Processed))
		data.Y[1] = append(data.Y[1], float64(day.Failed))
		processed, failed = processed+day.Processed, failed+day.Failed
	}
	return []chart{{
		Title: "Jobs by day", Data: data,
		Summary: fmt.Sprintf("%s processed and %s failed in %s", num(processed), num(failed), plural(len(days), "day")),
	}}
}
