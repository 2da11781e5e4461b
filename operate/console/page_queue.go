package console

import (
	"cmp"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"broker/core"
	"broker/core/schema"
	"broker/operate/service"
)

type stateCount struct {
	Name string
	N    int
}

type queueData struct {
	Ranges   []choice
	Charts   []chart
	Here     template.URL // URL of the page
	Figures  []figure
	Workers  []service.Worker
	Queue    service.Queue
	Doing    string // the condition of the queue, in a sentence
	Limited  bool   // a limit holds back the job that is next
	Keys     []service.QueueKey
	MoreKeys int // keys that Keys leaves out
	Scoped   []scopedLimit
	MoreUses int // rows of Scoped that are not shown
	Policy   policyView
	Limit    []schema.Field    // the form of the limits
	Share    map[string]string // the values in the form of fair turns
	Problem  string            // error of the submitted form
	Opened   string            // the form with the error
	States   []stateCount
	Failures []jobGroup
	Table    jobTable
}

func queuePage(r *request) (*view, error) {
	name := r.named("name")
	q, err := r.service.Queue(r.Context(), r.caller, name)
	if err != nil {
		return nil, err
	}
	d := &queueData{
		Queue: q, Policy: viewPolicy(q.Policy), Limit: limitsOfQueue(&q), Share: sharingValues(q.Sharing),
		States: []stateCount{
			{"ready", q.Ready},
			{"leased", q.Leased},
			{"retrying", q.Retrying},
			{"scheduled", q.Scheduled},
			{"blocked", q.Blocked},
			{"dead", q.Dead},
			{"done", q.Done},
		},
	}
	h, chosen, err := r.history(name)
	if err != nil {
		return nil, err
	}
	q.InRate, q.OutRate = h.pace.in, h.pace.done+h.pace.failed // the page shows the rates of one moment
	d.Charts, d.Here = h.chartsOf(name, r.marks(name, chosen.span), q.Ready,
		q.Leased), template.URL("queues/"+pathEscape(name))
	d.Figures = []figure{
		rateFigure("in", &q, q.InRate, h.sparkIn),
		rateFigure("out", &q, q.OutRate, h.sparkDone),
		{Label: "oldest waiting", Value: secondsOr(q.OldestS)},
		{Label: "wait p95", Value: secondsOr(h.pace.waitP95)},
		{Label: "run p95", Value: secondsOr(h.pace.runP95)},
	}
	d.Ranges = r.ranges(chosen)
	if d.Workers, err = r.workersOf(name); err != nil {
		return nil, err
	}
	if err := r.setActive(d, &q); err != nil {
		return nil, err
	}
	if d.Keys, err = r.service.Keys(r.Context(), r.caller, name); err != nil {
		return nil, err
	}
	d.MoreKeys = max(len(d.Keys)-activeRows, 0)
	d.Keys = d.Keys[:len(d.Keys)-d.MoreKeys]
	if err := r.setScoped(d, name); err != nil {
		return nil, err
	}
	failed, err := r.service.Jobs(r.Context(), r.caller, service.JobFilter{
		Queues: []string{name}, States: []string{"dead", "retrying"},
	}, service.JobPage{Limit: 1, Failures: maxGroups})
	if err != nil {
		return nil, err
	}
	d.Failures = groupsOf(failed.Failures)
	for i := range d.Failures {
		g := &d.Failures[i]
		g.Filter = groupFilter(g, url.Values{"queue": {name}, "state": {"dead", "retrying"}})
		if g.Message, err = r.groupMessage(g,
			service.JobFilter{Queues: []string{name}, States: []string{"dead", "retrying"}}); err != nil {
			return nil, err
		}
	}
	return &view{page: "queue", title: name, queue: name, nav: "queues", data: d}, nil
}

// scopedLimit is the use of a limit by a type or a key of the queue, or of a shared limit.
type scopedLimit struct {
	service.Limit
	Use service.LimitUse
}

// scopedRows limits the rows of the limits of types and keys.
const scopedRows = 20

// setScoped lists the limits of types and keys with their use, those that hold back most jobs first, without those of
// the keys that have a row of their own.
func (r *request) setScoped(d *queueData, queue string) error {
	limits, err := r.service.Limits(r.Context(), r.caller, queue)
	if err != nil {
		return err
	}
	for _, l := range limits {
		if l.Scope == "queue" {
			continue
		}
		for _, use := range l.Uses {
			listed := func(k service.QueueKey) bool { return k.Name == use.Name }
			if l.Scope != "key" || !slices.ContainsFunc(d.Keys, listed) {
				d.Scoped = append(d.Scoped, scopedLimit{l, use})
			}
		}
		if len(l.Uses) == 0 {
			d.Scoped = append(d.Scoped, scopedLimit{Limit: l, Use: service.LimitUse{Name: l.Name}})
		}
	}
	slices.SortStableFunc(d.Scoped, func(a, b scopedLimit) int {
		return cmp.Or(cmp.Compare(b.Use.Ready, a.Use.Ready), cmp.Compare(b.Use.Taken, a.Use.Taken))
	})
	d.MoreUses = max(len(d.Scoped)-scopedRows, 0)
	d.Scoped = d.Scoped[:len(d.Scoped)-d.MoreUses]
	return nil
}

// activeRows limits the running jobs on the page of a queue, the next ones, and the keys.
const activeRows = 10

// setActive lists the running jobs, longest-running first, and the next jobs, and describes the condition of the queue.
func (r *request) setActive(d *queueData, q *service.Queue) error {
	d.Table = jobTable{Columns: queueJobColumns, Empty: "No job waits or runs here."}
	for _, part := range []struct{ state, sort string }{{"leased", "leased"}, {"ready", "queue"}} {
		list, err := r.service.Jobs(r.Context(), r.caller,
			service.JobFilter{Queues: []string{q.Name}, States: []string{part.state}},
			service.JobPage{Limit: activeRows, Sort: part.sort})
		if err != nil {
			return err
		}
		d.Table.Jobs = append(d.Table.Jobs, list.Jobs...)
	}
	d.Limited = q.Wait != nil && q.Wait.Reason == "limit"
	d.Doing = diagnose(q)
	return nil
}

// workersOf returns the workers that take jobs of a queue or hold some, among the first thousand workers.
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

// queueJobColumns are the columns of the list on a queue's page.
var queueJobColumns = slices.DeleteFunc(slices.Clone(usualColumns),
	func(c jobColumn) bool { return c.Name == "queue" || c.Name == "tries" })

// changeQueue handles the forms of a queue's page.
func changeQueue(r *request) (*view, error) {
	name := r.named("name")
	do := r.PostFormValue("do")
	if do == "clear" || do == "remove" {
		return clearQueue(r, name, do == "remove")
	}
	// an emptied field removes its limit, because the form shows the present one
	for _, f := range queueLimitFields(nil) {
		if do == "limit" && r.PostForm.Has(f.Name) && len(given(r.PostForm, f.Name)) == 0 {
			r.PostForm.Set(f.Name, "0")
		}
	}
	if err := r.applyQueueForm(name, do); err != nil {
		return r.queueProblem(do, err)
	}
	return r.back("queues/"+pathEscape(name), queueNotes[do][0])
}

// queueProblem returns the page of the queue with an error of a form, which keeps its values.
func (r *request) queueProblem(do string, err error) (*view, error) {
	if !service.IsCode(err, service.CodeInvalid) {
		return nil, err
	}
	return again(r, err, queuePage, func(d *queueData, reason string) {
		d.Problem, d.Opened = reason, do
		switch do {
		case "limit":
			d.Limit = queueLimitFields(r.PostForm)
		case "share":
			d.Share = typed(r.PostForm)
		case "policy":
			typedFields(d.Policy.Fields, r.PostForm)
		}
	})
}

func clearQueue(r *request, name string, remove bool) (*view, error) {
	if r.PostFormValue("confirm") != name {
		return r.queueProblem(r.PostFormValue("do"),
			invalid("confirm", "type the name of the queue to confirm; nothing was removed"))
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
	return r.back("queues/"+pathEscape(name), note)
}
