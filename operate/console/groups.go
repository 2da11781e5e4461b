package console

import (
	"cmp"
	"html/template"
	"maps"
	"sort"
	"strings"
	"time"

	"broker/operate/service"
)

// groupLook is how many jobs are looked at to group failures; mostGroups is how many groups a page shows.
const (
	groupLook  = 1000
	mostGroups = 12
)

// jobGroup are the jobs of one error class and type.
type jobGroup struct {
	Error, Type, Message string
	N                    int
	URL                  any    // template.URL
	Filter               string // that chooses them
}

// setGroups counts the jobs by error class and type.
func (r *request) setGroups(d *jobsData, filter service.JobFilter) error {
	list, err := r.service.Jobs(r.Context(), r.caller, filter, service.JobPage{Limit: groupLook})
	if err != nil {
		return err
	}
	groups := groupFailures(list.Jobs)
	if len(groups) == 0 {
		return nil
	}
	d.Groups, d.GroupsSeen, d.GroupsExact = groups[:min(len(groups), mostGroups)], len(list.Jobs), list.Cursor == ""
	here := maps.Clone(r.query)
	here.Del("cursor")
	for i := range d.Groups {
		g := &d.Groups[i]
		if g.URL, err = with(here, "error_class", g.Error, "type", g.Type); err != nil {
			return err
		}
		q := filterQuery(r.query, d.States)
		q.Set("type", g.Type)
		if g.Error != "" {
			q.Set("error_class", g.Error)
		}
		g.Filter = q.Encode()
	}
	return nil
}

// groupFailures counts jobs by error class and type, the largest groups first.
func groupFailures(jobs []service.Job) []jobGroup {
	type key struct{ class, typ string }
	byKey := map[key]*jobGroup{}
	for i := range jobs {
		j := &jobs[i]
		k, message := key{typ: j.Type}, ""
		if j.Failure != nil {
			k.class, message = j.Failure.Type, j.Failure.Message
		}
		if byKey[k] == nil {
			byKey[k] = &jobGroup{Error: k.class, Type: k.typ, Message: message}
		}
		byKey[k].N++
	}
	groups := make([]jobGroup, 0, len(byKey))
	for _, g := range byKey {
		groups = append(groups, *g)
	}
	sort.Slice(groups, func(i, j int) bool {
		a, b := &groups[i], &groups[j]
		return cmp.Or(cmp.Compare(b.N, a.N), strings.Compare(a.Error, b.Error), strings.Compare(a.Type, b.Type)) < 0
	})
	return groups
}

// timeSpan are the jobs that are due, or died, within a span of time.
type timeSpan struct {
	Label   string
	URL     template.URL
	N       int
	Counted bool // exactly
}

// spanEdges divide the time to come, or the time past.
var spanEdges = []struct {
	after time.Duration
	label string
}{{time.Minute, "1 min"}, {time.Hour, "1 h"}, {24 * time.Hour, "24 h"}, {7 * 24 * time.Hour, "7 days"}}

// setSpans counts the jobs by the time that they are due or died.
func (r *request) setSpans(d *jobsData, filter service.JobFilter, p listPage) error {
	from, to := "due_from", "due_to"
	set := func(f *service.JobFilter, a, b time.Time) { f.DueFrom, f.DueTo = a, b }
	d.SpansTitle = "When they are due"
	sign := time.Duration(1)
	switch {
	case p.state == "dead":
		from, to, sign = "died_from", "died_to", -1
		set = func(f *service.JobFilter, a, b time.Time) { f.DiedFrom, f.DiedTo = a, b }
		d.SpansTitle = "When they died"
	case p.state == "leased" || d.Count == 0:
		return nil
	}
	if given(r.query, from) != nil || given(r.query, to) != nil {
		return nil // the list is one of the spans
	}
	now := r.console.options.Now().Truncate(time.Second)
	here := maps.Clone(r.query)
	here.Del("cursor")
	var last time.Time
	for i := 0; i <= len(spanEdges); i++ {
		label, edge := "", time.Time{}
		switch {
		case i == len(spanEdges) && sign > 0:
			label = "later"
		case i == len(spanEdges):
			label = "earlier"
		case sign > 0:
			label, edge = "within "+spanEdges[i].label, now.Add(spanEdges[i].after)
		default:
			label, edge = "last "+spanEdges[i].label, now.Add(-spanEdges[i].after)
		}
		a, b := last, edge
		if sign < 0 {
			a, b = edge, last
		}
		part := filter
		set(&part, a, b)
		list, err := r.service.Jobs(r.Context(), r.caller, part, service.JobPage{Limit: 1, Count: true})
		if err != nil {
			return err
		}
		pairs := []string{from, "", to, ""}
		if !a.IsZero() {
			pairs[1] = formTime(a)
		}
		if !b.IsZero() {
			pairs[3] = formTime(b)
		}
		link, err := with(here, pairs...)
		if err != nil {
			return err
		}
		d.Spans = append(d.Spans, timeSpan{label, link, list.Count, list.CountExact})
		d.SpansMost = max(d.SpansMost, list.Count, 1)
		last = edge
	}
	return nil
}
