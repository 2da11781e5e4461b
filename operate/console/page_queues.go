package console

import (
	"cmp"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"time"

	"broker/core/schema"
	"broker/operate/service"
)

type queuesData struct {
	Problem      string            // error of the submitted form
	Opened       string            // the form with the error
	Typed        map[string]string // its values
	Limit        []schema.Field    // the form of the limits
	Selected     map[string]bool
	Queues       []*queueRow
	Search, Back string
	Sorts        []choice
	Conditions   []choice
	Only         string // one of service.QueueConditions; empty: all
	Columns      []queueHead
	Unmeasured   string       // why queues of the page have no rates; empty: all have
	Next         template.URL // empty on the last page
}

// queueRow is a queue with its last half hour.
type queueRow struct {
	service.Queue
	Spark template.HTML
}

// queueRows adds a spark line to each active queue.
func (r *request) queueRows(list []service.Queue) ([]*queueRow, error) {
	rows := make([]*queueRow, len(list))
	from := r.console.options.Now().Add(-sparkSpan)
	for i, q := range list {
		rows[i] = &queueRow{Queue: q}
		var err error
		if rows[i].Wait, err = r.service.QueueWait(r.Context(), r.caller, &q); err != nil {
			return nil, err
		}
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

// sparkSpan is the time span of a spark line in the list of queues.
const sparkSpan = 30 * time.Minute

// queueConditions are the links to the queues in each condition.
func (r *request) queueConditions() (links []choice) {
	chosen := r.query.Get("only")
	for _, name := range append([]string{""}, service.QueueConditions...) {
		links = append(links, choice{
			Label: cmp.Or(name, "all"), URL: with(r.query, "only", name, "cursor", ""), Chosen: name == chosen,
		})
	}
	return links
}

func queuesPage(r *request) (*view, error) {
	sort := cmp.Or(r.query.Get("sort"), "name")
	list, cursor, err := r.service.Queues(r.Context(), r.caller, service.QueueFilter{
		Search: r.query.Get("search"), Only: r.query.Get("only"), Sort: sort, Limit: pageRows, Cursor: r.query.Get("cursor"),
	})
	if err != nil {
		return nil, err
	}
	rows, err := r.queueRows(list)
	if err != nil {
		return nil, err
	}
	return &view{page: "queues", title: "Queues", nav: "queues", data: &queuesData{
		Selected: map[string]bool{}, Typed: map[string]string{}, Limit: queueLimitFields(nil),
		Queues: rows, Columns: r.queueHeads(sort), Search: r.query.Get("search"), Back: r.URL.RawQuery,
		Only: r.query.Get("only"), Conditions: r.queueConditions(), Unmeasured: whyUnmeasured(list),
		Next: r.nextPage("queues", cursor),
		Sorts: choices(sort, "name", "name", "-ready", "most ready", "-leased", "most leased", "-dead", "most dead",
			"-retrying", "most retrying", "-scheduled", "most scheduled", "-latency", "oldest first"),
	}}, nil
}

// whyUnmeasured says why queues have no rates; empty: all have.
func whyUnmeasured(list []service.Queue) string {
	if slices.ContainsFunc(list, func(q service.Queue) bool { return !q.Measured }) {
		return unmeasured
	}
	return ""
}

// changeQueues changes the selected queues of the list.
func changeQueues(r *request) (*view, error) {
	names := r.PostForm["id"]
	to := "queues"
	if q := r.PostFormValue("query"); q != "" {
		to += "?" + q
	}
	to = pageOf(cmp.Or(r.PostFormValue("back"), to), "queues")
	if len(names) == 0 {
		return r.back(to, "No queue was selected.")
	}
	do := r.PostFormValue("do")
	if do == "clear" {
		return r.confirmClear(names, to)
	}
	for i, name := range names {
		if err := r.applyQueueForm(name, do); err != nil {
			if i > 0 {
				err = invalid("id", plural(i, "queue")+" changed; then, for "+name+": "+err.Error())
			}
			return r.queuesProblem(do, err)
		}
	}
	return r.back(to, fmt.Sprintf(queueNotes[do][1], plural(len(names), "queue")))
}

// queuesProblem returns the list with an error of its form. The form keeps its values, and the list its selection.
func (r *request) queuesProblem(do string, err error) (*view, error) {
	query, failed := url.ParseQuery(r.PostFormValue("query"))
	if failed != nil || !service.IsCode(err, service.CodeInvalid) {
		return nil, err
	}
	r.query = query
	return again(r, err, queuesPage, func(d *queuesData, reason string) {
		d.Problem, d.Opened, d.Typed, d.Back = reason, do, typed(r.PostForm), r.PostFormValue("query")
		d.Limit = queueLimitFields(r.PostForm)
		for _, name := range r.PostForm["id"] {
			d.Selected[name] = true
		}
	})
}

// confirmClear shows how many jobs of the queues would be removed.
func (r *request) confirmClear(names []string, back string) (*view, error) {
	query := url.Values{"queue": names}
	filter, _ := jobFilter(query, nil, r.console.options.Now()) // names of queues are always valid
	d := &confirmData{Action: string(service.ActionDelete), All: true, Back: back, Filter: query.Encode()}
	return r.confirm(d, service.Action{Action: service.ActionDelete}, service.Selection{Filter: &filter})
}
