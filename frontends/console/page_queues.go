package console

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"broker/core"
	"broker/frontends/service"
)

// pageRows is how many rows a list shows.
const pageRows = 50

// choice is one of several things that a page offers.
type choice struct {
	Value, Label string
	URL          any // template.URL
	Chosen       bool
	Dangerous    bool
}

func choices(chosen string, pairs ...string) []choice {
	list := make([]choice, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, choice{Value: pairs[i], Label: pairs[i+1], Chosen: pairs[i] == chosen})
	}
	return list
}

type queuesData struct {
	Queues       []queueRow
	Search, Back string
	Sorts        []choice
	Columns      []queueColumn
	Next         any // template.URL, nil on the last page
}

// queueRow is a queue with what happened in the last half hour.
type queueRow struct {
	service.Queue
	Spark template.HTML
}

// queueRows draws a spark line for each queue in which something happened.
func (r *request) queueRows(list []service.Queue) ([]queueRow, error) {
	rows := make([]queueRow, len(list))
	from := r.console.options.Now().Add(-sparkSpan)
	for i, q := range list {
		rows[i].Queue = q
		if q.Totals == (service.QueueTotals{}) {
			continue
		}
		s, err := r.service.Series(r.Context(), r.caller, service.SeriesQuery{Queue: q.Name, Step: "1m", From: from})
		if err != nil {
			return nil, err
		}
		values := make([]float64, 0, len(s.Points)+1)
		for _, p := range s.Points {
			values = append(values, float64(p.Done+p.Failed)/s.StepS)
		}
		rows[i].Spark = spark(append(values, q.OutRate), "good")
	}
	return rows, nil
}

// sparkSpan is the time that a spark line in the list of queues shows.
const sparkSpan = 30 * time.Minute

// queueColumn is the head of a column, which orders the list.
type queueColumn struct {
	Value, Label string
	URL          any // template.URL
	Chosen       bool
	Sorted       string // ascending or descending
}

// queueColumns are the columns of the list of queues.
func (r *request) queueColumns(sort string) (columns []queueColumn, err error) {
	for _, c := range choices("", "name", "Queue", "ready", "Ready", "leased", "Running", "retrying", "Retrying", "scheduled", "Scheduled", "dead", "Dead", "latency", "Oldest", "", "In", "", "Out", "", "Last 30 min") {
		if c.Value == "" {
			columns = append(columns, queueColumn{Label: c.Label})
			continue
		}
		name, down := strings.CutPrefix(sort, "-")
		next, column := "-"+c.Value, queueColumn{Value: c.Value, Label: c.Label, Chosen: name == c.Value, Sorted: "ascending"}
		if down {
			column.Sorted = "descending"
		}
		if c.Value == "name" || column.Chosen && down {
			next = c.Value
		}
		if column.Chosen && !down {
			next = "-" + c.Value
		}
		if column.URL, err = with(r.query, "sort", next, "cursor", ""); err != nil {
			return nil, err
		}
		columns = append(columns, column)
	}
	return columns, nil
}

// nextPage is the link to the page that follows, nil after the last.
func (r *request) nextPage(path, cursor string) (any, error) {
	if cursor == "" {
		return nil, nil //nolint:nilnil // no link
	}
	link, err := with(r.query, "cursor", cursor)
	if err != nil {
		return nil, err
	}
	return joinURL(path, link), nil
}

func queuesPage(r *request) (*view, error) {
	sort := r.query.Get("sort")
	if sort == "" {
		sort = "name"
	}
	list, cursor, err := r.service.Queues(r.Context(), r.caller, service.QueueFilter{
		Search: r.query.Get("search"), Sort: sort, Limit: pageRows, Cursor: r.query.Get("cursor"),
	})
	if err != nil {
		return nil, err
	}
	next, err := r.nextPage("queues", cursor)
	if err != nil {
		return nil, err
	}
	columns, err := r.queueColumns(sort)
	if err != nil {
		return nil, err
	}
	rows, err := r.queueRows(list)
	if err != nil {
		return nil, err
	}
	return &view{page: "queues", title: "Queues", nav: "queues", data: &queuesData{
		Queues: rows, Columns: columns, Search: r.query.Get("search"), Back: r.URL.RawQuery, Next: next,
		Sorts: choices(sort, "name", "name", "-ready", "most ready", "-leased", "most leased", "-dead", "most dead",
			"-retrying", "most retrying", "-scheduled", "most scheduled", "-latency", "oldest first"),
	}}, nil
}

// changeQueues pauses or resumes the queues that are selected.
func changeQueues(r *request) (*view, error) {
	paused := r.PostFormValue("do") == "pause"
	names := r.PostForm["id"]
	for _, name := range names {
		if _, err := r.service.ChangeQueue(r.Context(), r.caller, name, service.QueueChange{Paused: &paused}); err != nil {
			return nil, err
		}
	}
	word := map[bool]string{true: "paused", false: "resumed"}[paused]
	to := "queues"
	if q := r.PostFormValue("query"); q != "" {
		to += "?" + q
	}
	return r.back(to, plural(len(names), "queue")+" "+word+".")
}

type stateCount struct {
	Name string
	N    int
}

type queueData struct {
	Ranges   []choice
	Charts   []chart
	Here     template.URL // of the page
	Figures  []figure
	Workers  []service.Worker
	Queue    service.Queue
	States   []stateCount
	Failures []jobGroup
	Table    jobTable
}

func queuePage(r *request) (*view, error) {
	name := r.PathValue("name")
	q, err := r.service.Queue(r.Context(), r.caller, name)
	if err != nil {
		return nil, err
	}
	d := &queueData{Queue: q, States: []stateCount{
		{"ready", q.Ready},
		{"leased", q.Leased},
		{"retrying", q.Retrying},
		{"scheduled", q.Scheduled},
		{"blocked", q.Blocked},
		{"dead", q.Dead},
		{"done", q.Done},
	}}
	h, chosen, err := r.history(name)
	if err != nil {
		return nil, err
	}
	d.Charts, d.Here = h.charts, template.URL("queues/"+url.PathEscape(name)) //nolint:gosec // escaped
	d.Figures = []figure{
		{Label: "in", Value: float(q.InRate), Unit: "/s", Spark: h.sparkIn},
		{Label: "out", Value: float(q.OutRate), Unit: "/s", Spark: h.sparkDone},
		{Label: "oldest waiting", Value: secondsOr(q.OldestS)},
		{Label: "wait p95", Value: secondsOr(h.waitP95)},
		{Label: "run p95", Value: secondsOr(h.runP95)},
	}
	if d.Ranges, err = r.ranges(chosen); err != nil {
		return nil, err
	}
	if d.Workers, err = r.workersOf(name); err != nil {
		return nil, err
	}
	active, err := r.service.Jobs(r.Context(), r.caller, service.JobFilter{
		Queues: []string{name}, States: []string{"leased", "ready"},
	}, service.JobPage{Limit: 20})
	if err != nil {
		return nil, err
	}
	d.Table = jobTable{Jobs: active.Jobs, Columns: queueJobColumns, Empty: "No job waits or runs here."}
	failed, err := r.service.Jobs(r.Context(), r.caller, service.JobFilter{
		Queues: []string{name}, States: []string{"dead", "retrying"},
	}, service.JobPage{Limit: groupLook})
	if err != nil {
		return nil, err
	}
	d.Failures = groupFailures(failed.Jobs)
	d.Failures = d.Failures[:min(len(d.Failures), mostGroups)]
	for i := range d.Failures {
		g := &d.Failures[i]
		q := url.Values{"queue": {name}, "state": {"dead", "retrying"}, "type": {g.Type}}
		if g.Error != "" {
			q.Set("error_class", g.Error)
		}
		g.Filter = q.Encode()
	}
	return &view{page: "queue", title: name, nav: "queues", data: d}, nil
}

// workersOf are those that take jobs of a queue, or hold some, as far as they are among the first thousand.
func (r *request) workersOf(queue string) (found []service.Worker, err error) {
	all, _, err := r.service.Workers(r.Context(), r.caller, "", 1000, "")
	for _, w := range all {
		holds := slices.ContainsFunc(w.Held, func(j service.HeldJob) bool { return j.Queue == queue })
		if holds || slices.Contains(w.Queues, queue) {
			found = append(found, w)
		}
	}
	return found[:min(len(found), 20)], ignoreRefusal(err)
}

// queueJobColumns are those of the list on a queue's page.
var queueJobColumns = slices.DeleteFunc(slices.Clone(usualColumns), func(c jobColumn) bool { return c.Name == "queue" || c.Name == "tries" })

// changeQueue serves the forms of a queue's page.
func changeQueue(r *request) (*view, error) {
	name := r.PathValue("name")
	at := "queues/" + url.PathEscape(name)
	do := r.PostFormValue("do")
	switch do {
	case "pause", "resume":
		paused := do == "pause"
		if _, err := r.service.ChangeQueue(r.Context(), r.caller, name, service.QueueChange{Paused: &paused}); err != nil {
			return nil, err
		}
		return r.back(at, "The queue is "+map[bool]string{true: "paused.", false: "resumed."}[paused])
	case "limit":
		limits, err := queueMax(r.PostForm)
		if err != nil {
			return nil, err
		}
		if _, err := r.service.ChangeQueue(r.Context(), r.caller, name, service.QueueChange{Max: limits}); err != nil {
			return nil, err
		}
		return r.back(at, "The limits are set.")
	case "clear", "remove":
		return clearQueue(r, name, do == "remove")
	}
	return nil, &service.Error{Code: service.CodeInvalid, Field: "do", Detail: "there is no action " + strconv.Quote(do)}
}

func clearQueue(r *request, name string, remove bool) (*view, error) {
	if r.PostFormValue("confirm") != name {
		return nil, &service.Error{Code: service.CodeInvalid, Field: "confirm", Detail: "type the name of the queue to confirm; nothing was removed"}
	}
	var states []core.State
	if text := r.PostFormValue("state"); text != "" && !remove {
		var err error
		if states, err = service.ParseStates(strings.Split(text, ",")); err != nil {
			return nil, err
		}
	}
	n, err := r.service.ClearQueue(r.Context(), r.caller, name, states, remove)
	if err != nil {
		return nil, err
	}
	note := plural(n, "job") + " removed."
	if remove {
		return r.back("queues", note+" The queue is gone.")
	}
	return r.back("queues/"+url.PathEscape(name), note)
}

func queueMax(form url.Values) (*service.QueueMax, error) {
	var m service.QueueMax
	for name, to := range map[string]*uint32{"high": &m.High, "normal": &m.Normal, "low": &m.Low} {
		n, err := strconv.ParseUint(strings.TrimSpace(form.Get(name)), 10, 32)
		if err != nil {
			return nil, &service.Error{Code: service.CodeInvalid, Field: name, Detail: fmt.Sprintf("%q is not a number of jobs", form.Get(name))}
		}
		*to = uint32(n)
	}
	return &m, nil
}
