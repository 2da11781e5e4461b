package console

import (
	"cmp"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"broker/operate/service"
)

// groupLook is the number of jobs that are read to group failures if the broker has no counts. maxGroups limits the
// groups on a page.
const (
	groupLook = 1000
	maxGroups = 12
	allGroups = 300 // after a request for all of them
)

// groupLimit is the number of groups that the page shows.
func (r *request) groupLimit() int {
	if r.query.Get("groups") == "all" {
		return allGroups
	}
	return maxGroups
}

// jobGroup is a group of failed jobs with the same failure group and type.
type jobGroup struct {
	groupSeen
	Error, Type, Message string
	N                    int
	died                 []int // deaths in each of the last hours; nil: not known, or none
	firstHour, lastHour  time.Time
	Versions             []versionLink
	URL                  template.URL
	Filter               string // filter for exactly these jobs; empty: no such filter exists
}

// versionLink is the part of a group that workers of one version have left.
type versionLink struct {
	service.VersionCount

	Spark template.HTML
	URL   template.URL
}

// setGroups counts the jobs by failure group and type. counts are the broker's counts, nil if it has none for the
// filter.
func (r *request) setGroups(d *jobsData, filter service.JobFilter, counts []service.FailureCount) error {
	groups := groupsOf(counts)
	d.GroupsExact = counts != nil
	d.Sparks = counts != nil && slices.Equal(d.States, []string{"dead"})
	if !d.GroupsExact {
		list, err := r.service.Jobs(r.Context(), r.caller, filter,
			service.JobPage{Limit: groupLook, Sort: latestFailures[d.States[0]], TimeLimit: searchLimit})
		if err != nil {
			return err
		}
		groups, d.GroupsSeen, d.GroupsExact = groupFailures(list.Jobs), len(list.Jobs), list.Cursor == ""
	}
	if d.Sparks && r.query.Get("classes") != "largest" {
		newestFirst(groups)
		d.Newest = true
	}
	d.Groups = groups[:min(len(groups), r.groupLimit())]
	d.GroupsMore = len(groups) > len(d.Groups)
	here := maps.Clone(r.query)
	here.Del("cursor")
	if d.GroupsMore && len(d.Groups) < allGroups {
		d.AllGroups = with(here, "groups", "all")
	}
	if d.Sparks {
		order := ""
		if d.Newest {
			order = "largest"
		}
		d.GroupOrder = with(here, "classes", order, "groups", r.query.Get("groups"))
	}
	here.Del("groups")
	for i := range d.Groups {
		g := &d.Groups[i]
		g.URL = with(here, "failure_group", service.FilterValue(g.Error), "type", g.Type)
		for k := range g.Versions {
			v := &g.Versions[k]
			v.Spark = deathLine(v.Died)
			v.URL = with(here, "failure_group", service.FilterValue(g.Error), "type", g.Type,
				"worker_version", service.FilterValue(v.Version))
		}
		g.Filter = groupFilter(g, r.actionFilter(d.States))
		if g.Message == "" {
			var err error
			if g.Message, err = r.groupMessage(g, filter); err != nil {
				return err
			}
		}
	}
	return r.setSeen(d, filter)
}

// groupFilter adds the conditions of the group to a filter. It returns an empty filter if a query cannot express the
// type, so that the buttons of the group affect no other jobs.
func groupFilter(g *jobGroup, q url.Values) string {
	if strings.TrimSpace(g.Type) == "" || !utf8.ValidString(g.Type) {
		return ""
	}
	q.Set("type", g.Type)
	q.Set("failure_group", service.FilterValue(g.Error))
	return q.Encode()
}

// groupMessage returns the failure message of one job of a group.
func (r *request) groupMessage(g *jobGroup, filter service.JobFilter) (string, error) {
	filter.Types, filter.FailureGroup = []string{g.Type}, service.FilterValue(g.Error)
	for _, state := range filter.States {
		part := filter
		part.States = []string{state}
		list, err := r.service.Jobs(r.Context(), r.caller, part, service.JobPage{Limit: 1, Sort: latestFailures[state]})
		if err != nil {
			return "", err
		}
		if len(list.Jobs) > 0 && list.Jobs[0].Failure != nil {
			return list.Jobs[0].Failure.Message, nil
		}
	}
	return "", nil
}

// latestFailures are the sort orders in which the broker finds the latest failures without reading jobs in other
// states.
var latestFailures = map[string]string{"dead": "-died", "retrying": "-due"}

// groupsOf converts the broker's counts to groups.
func groupsOf(counts []service.FailureCount) []jobGroup {
	groups := make([]jobGroup, len(counts))
	for i, c := range counts {
		groups[i] = jobGroup{Error: c.Group, Type: c.Type, N: c.Jobs, died: c.Died}
		if c.FirstHour != nil && c.LastHour != nil {
			groups[i].firstHour, groups[i].lastHour = *c.FirstHour, *c.LastHour
		}
		for _, v := range c.Versions {
			groups[i].Versions = append(groups[i].Versions, versionLink{VersionCount: v})
		}
	}
	return groups
}

// groupFailures counts jobs by failure group and type, largest group first.
func groupFailures(jobs []service.Job) []jobGroup {
	byKey := map[groupKey]*jobGroup{}
	for i := range jobs {
		j := &jobs[i]
		k := groupKey{j.FailureGroup, j.Type}
		if byKey[k] == nil {
			byKey[k] = &jobGroup{Error: k.group, Type: k.typ}
		}
		if g := byKey[k]; g.Message == "" && j.Failure != nil {
			g.Message = j.Failure.Message
		}
		byKey[k].N++
	}
	groups := make([]jobGroup, 0, len(byKey))
	for _, g := range byKey {
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b jobGroup) int {
		return cmp.Or(cmp.Compare(b.N, a.N), strings.Compare(a.Error, b.Error), strings.Compare(a.Type, b.Type))
	})
	return groups
}

// timeSpan counts the jobs that are due, or died, within a time span.
type timeSpan struct {
	Label string
	URL   template.URL
	N     int
}

// spanEdges are the limits of the time spans, in the future or in the past.
var spanEdges = []struct {
	after time.Duration
	label string
}{
	{time.Minute, "under 1 min"},
	{time.Hour, "1 min to 1 h"},
	{24 * time.Hour, "1 to 24 h"},
	{7 * 24 * time.Hour, "1 to 7 days"},
}

// setSpans counts the jobs by the time at which they are due or died.
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
	case p.state == "leased":
		return nil
	}
	if d.Count == 0 || !d.Exact {
		return nil // a search has no counts
	}
	if given(r.query, from) != nil || given(r.query, to) != nil {
		return nil // the list already shows one span
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
			label, edge = "in "+spanEdges[i].label, now.Add(spanEdges[i].after)
		default:
			label, edge = spanEdges[i].label+" ago", now.Add(-spanEdges[i].after)
		}
		a, b := last, edge
		if sign < 0 {
			a, b = edge, last
		}
		part := filter
		set(&part, a, b)
		// sorted so that the jobs of the span are adjacent
		list, err := r.service.Jobs(r.Context(), r.caller, part, service.JobPage{Limit: 1, Count: true, Sort: p.sort})
		if err != nil {
			return err
		}
		if !list.CountExact {
			d.Spans = nil // the parts of this list are not counted
			return nil
		}
		pairs := []string{from, "", to, ""}
		if !a.IsZero() {
			pairs[1] = formTime(a)
		}
		if !b.IsZero() {
			pairs[3] = formTime(b)
		}
		d.Spans = append(d.Spans, timeSpan{label, with(here, pairs...), list.Count})
		d.SpansMost = max(d.SpansMost, list.Count, 1)
		last = edge
	}
	return nil
}
