package console

import (
	"cmp"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"broker/core"
	"broker/operate/service"
)

// deathChart shows when dead jobs died, with the marks of deploys. Its span is chosen with the pointer, by its form, or
// by its links.
type deathChart struct {
	chart

	Whole    bool         // the counts are of whole hours, and the span of the list is not
	From, To string       // of the chosen span, for the form; empty: open
	Kept     url.Values   // parameters that the form keeps
	Spans    []choice     // spans up to now
	Marks    []markChoice // the latest marks
	Since    string       // what the new errors are new since
}

// markChoice is a mark that a list of errors can be compared with.
type markChoice struct {
	service.Mark

	URL    template.URL
	Chosen bool
}

// shownMarks limits the marks above a list of errors. sinceMark is the age up to which the latest mark is the moment
// since which errors are new, unless another one is chosen. deathLines limits the lines of single errors in the chart,
// and countedGroups the groups that the chart counts.
const (
	shownMarks    = 5
	sinceMark     = 7 * 24 * time.Hour
	deathLines    = 3
	countedGroups = 10_000
)

// deathSpans are the spans that a list of dead jobs offers.
var deathSpans = []struct{ value, label string }{
	{"", "24 h"}, {"168h", "7 days"}, {"720h", "30 days"},
}

// hours returns a range of deaths widened to whole clock hours, in which failures are counted.
func hours(f service.JobFilter) (whole service.JobFilter, same bool) {
	whole = f
	whole.DiedFrom = f.DiedFrom.Truncate(time.Hour)
	if whole.DiedTo = f.DiedTo.Truncate(time.Hour); !f.DiedTo.Equal(whole.DiedTo) {
		whole.DiedTo = whole.DiedTo.Add(time.Hour)
	}
	return whole, whole.DiedFrom.Equal(f.DiedFrom) && whole.DiedTo.Equal(f.DiedTo)
}

// countDeaths counts the dead jobs of a filter by error and type, and adds the chart. The counts are nil if the filter
// has other conditions.
func (r *request) countDeaths(d *jobsData, filter service.JobFilter) ([]service.FailureCount, error) {
	whole, same := hours(filter)
	list, err := r.service.Jobs(r.Context(), r.caller, whole,
		service.JobPage{Limit: 1, Brief: true, Failures: countedGroups})
	if err != nil || list.Failures == nil {
		return nil, err
	}
	d.Deaths = &deathChart{Whole: !same, Kept: maps.Clone(r.query)}
	for _, name := range []string{"died_from", "died_to", "cursor", "hold"} {
		d.Deaths.Kept.Del(name)
	}
	d.Deaths.From, d.Deaths.To = formInstant(filter.DiedFrom), formInstant(filter.DiedTo)
	given := strings.TrimSpace(r.query.Get("died_from"))
	for _, s := range deathSpans {
		chosen := filter.DiedTo.IsZero() && (given == s.value || s.value != "" && given == "-"+s.value)
		d.Deaths.Spans = append(d.Deaths.Spans,
			choice{Label: s.label, URL: with(d.Deaths.Kept, "died_from", s.value), Chosen: chosen})
	}
	if err := r.setMarks(d); err != nil {
		return nil, err
	}
	r.drawDeaths(d, whole, list.Failures)
	return list.Failures, nil
}

// formInstant is a time for a field; empty: none.
func formInstant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return formTime(t)
}

// drawDeaths sets the data of the chart: all errors together, and those with most deaths.
func (r *request) drawDeaths(d *jobsData, f service.JobFilter, counts []service.FailureCount) {
	now := core.InstantOf(r.console.options.Now())
	span := core.DiedSpan(core.Range{From: core.InstantOf(f.DiedFrom), To: core.InstantOf(f.DiedTo)}, now)
	n := int(span.To.Sub(span.From) / time.Hour)
	sum, died, classes := make([]float64, n), 0, map[string][]float64{}
	for i := range counts {
		c := &counts[i]
		if classes[c.Group] == nil {
			classes[c.Group] = make([]float64, n)
		}
		for k := range min(n, len(c.Died)) {
			sum[k] += float64(c.Died[k])
			classes[c.Group][k] += float64(c.Died[k])
			died += c.Died[k]
		}
	}
	data := chartData{Labels: []string{"all"}, Colours: []string{"--bad"}, Whole: true, Select: "died"}
	data.Y = append(data.Y, sum)
	if len(classes) > 1 {
		colours := []string{"--in", "--warn", "--cyan"}
		for i, name := range largestClasses(classes) {
			data.Labels = append(data.Labels, short(30, cmp.Or(name, "no error class")))
			data.Colours, data.Y = append(data.Colours, colours[i]), append(data.Y, classes[name])
		}
	}
	for i := range n {
		data.X = append(data.X, span.From.Add(time.Duration(i)*time.Hour).Time().Unix())
	}
	if n > 0 { // the last hour reaches until now
		data.X = append(data.X, min(span.To, max(now, span.From)).Time().Unix())
		for i := range data.Y {
			data.Y[i] = append(data.Y[i], data.Y[i][n-1])
		}
	}
	for _, m := range d.Deaths.Marks {
		data.Marks = append(data.Marks, chartMark{m.At.Unix(), m.Text})
	}
	data.Jobs = d.Path + string(with(d.Deaths.Kept, "sort", cmp.Or(r.query.Get("sort"), "-died")))
	d.Deaths.chart = chart{Title: "Died per hour", Summary: num(died) + " in " + plural(n, "hour"), Data: data}
}

// largestClasses returns the errors with most deaths, at most deathLines.
func largestClasses(classes map[string][]float64) []string {
	total := make(map[string]float64, len(classes))
	for name, line := range classes {
		for _, v := range line {
			total[name] += v
		}
	}
	names := slices.SortedFunc(maps.Keys(classes), func(a, b string) int {
		return cmp.Or(cmp.Compare(total[b], total[a]), strings.Compare(a, b))
	})
	return names[:min(len(names), deathLines)]
}

// setMarks lists the latest marks, and decides since when errors are new: since the chosen mark or the latest one.
func (r *request) setMarks(d *jobsData) error {
	all, err := r.service.ListMarks(r.caller)
	if err = ignoreRefusal(err); err != nil {
		return err
	}
	asked, now := r.query.Get("since"), r.console.options.Now()
	for i, m := range all {
		chosen := m.ID == asked || asked == "" && i == 0 && now.Sub(m.At) < sinceMark
		if chosen {
			d.since, d.Deaths.Since = m.At, m.Text
		}
		if chosen || len(d.Deaths.Marks) < shownMarks {
			d.Deaths.Marks = append(d.Deaths.Marks, markChoice{m, with(r.query, "since", m.ID), chosen})
		}
	}
	return nil
}

// newestFirst sorts groups by the hour of their first death, the latest first.
func newestFirst(groups []jobGroup) {
	slices.SortStableFunc(groups, func(a, b jobGroup) int {
		return cmp.Or(b.firstHour.Compare(a.firstHour), cmp.Compare(b.N, a.N))
	})
}
