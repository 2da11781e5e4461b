package console

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"broker/operate/service"
)

// jobColumn is a column of a list of jobs.
type jobColumn struct {
	Name, Label string
	Num         bool
	shown       bool // shown by default
}

var jobColumns = []jobColumn{
	{Name: "job", Label: "Job", shown: true},
	{Name: "state", Label: "State", shown: true},
	{Name: "queue", Label: "Queue", shown: true},
	{Name: "when", Label: "Updated", shown: true},
	{Name: "tries", Label: "Tries", Num: true, shown: true},
	{Name: "note", Label: "Note", shown: true},
	{Name: "error", Label: "Error class"},
	{Name: "priority", Label: "Priority", Num: true},
	{Name: "origin", Label: "Submitted by"},
	{Name: "tags", Label: "Tags"},
	{Name: "worker", Label: "Worker"},
	{Name: "created", Label: "Created"},
	{Name: "batch", Label: "Batch"},
	{Name: "unique", Label: "Unique key"},
	{Name: "size", Label: "Body", Num: true},
}

// usualColumns are the default columns.
var usualColumns = slices.DeleteFunc(slices.Clone(jobColumns), func(c jobColumn) bool { return !c.shown })

// oneStateColumns are the columns of a list of jobs in one state.
var oneStateColumns = slices.DeleteFunc(slices.Clone(usualColumns), func(c jobColumn) bool { return c.Name == "state" })

// runningColumns are the columns of running jobs, with their workers.
var runningColumns = slices.DeleteFunc(slices.Clone(jobColumns), func(c jobColumn) bool {
	return c.Name != "job" && c.Name != "queue" && c.Name != "when" && c.Name != "worker" && c.Name != "note" &&
		c.Name != "tries"
})

// columnsCookie is the name of the cookie with the chosen columns of a page.
func columnsCookie(path string) string { return "broker_columns_" + strings.Trim(path, "/") }

// columnsOwner identifies the principal in the cookie, so that people who share a browser do not change each other's
// columns.
func columnsOwner(caller service.Caller) string {
	sum := sha256.Sum256([]byte(caller.Name()))
	return hex.EncodeToString(sum[:4])
}

// jobRow is a job with the displayed columns.
type jobRow struct {
	Job     service.Job
	Noted   service.Job // the job for the column of notes, without the values that have a column of their own
	Columns []jobColumn
}

func newJobRow(j service.Job, columns []jobColumn) jobRow {
	r := jobRow{j, j, columns}
	if slices.ContainsFunc(columns, func(c jobColumn) bool { return c.Name == "worker" }) {
		r.Noted.Worker, r.Noted.HeldFrom = "", ""
	}
	return r
}

// hasNote reports whether the column of notes has a text for a job.
func hasNote(j service.Job) bool {
	return j.State == "leased" && (j.Progress != nil || j.Worker != "" || j.HeldFrom != "") ||
		j.State != "ready" && j.Failure != nil || j.Reason != "" || len(j.Tags) > 0
}

// jobTable is a list of jobs without a filter bar.
type jobTable struct {
	Jobs    []service.Job
	Columns []jobColumn
	Empty   string
}

type jobsData struct {
	Search               string   // the entered search, if it is invalid
	SearchWords          []string // words with which a search may begin
	Heading, Path, Empty string
	Fixed                bool // the page is for one state
	States               []string
	StateTabs            []stateTab
	Chips                []filterChip
	Problems             []problem
	More                 []filterField
	MoreOpen             bool
	MoreUsed             int // number of conditions in the lower part of the bar
	Sorts, AllColumns    []choice
	Columns              []jobColumn
	ColumnQuery          url.Values // parameters that the form of the columns keeps
	Jobs                 []service.Job
	Count                int
	Counted, Exact       bool
	First, Next          template.URL
	Looked, Of           int          // number of jobs that a search has read so far, and of all that it may read
	Continue             template.URL // the next page, while a search has found nothing
	Hold                 template.URL // this page, without continuing the search
	Filter, OneQueue     string
	FormerWorker         string // the worker of the filter, which leased jobs only have
	Actions              []choice
	Groups               []jobGroup
	GroupsSeen           int
	GroupsExact          bool
	GroupsMore           bool         // there are more groups than shown
	AllGroups            template.URL // the page with all groups
	Sparks               bool         // the groups have spark lines
	Deaths               *deathChart  // nil: no list of dead jobs, or they are not counted
	Newest               bool         // the groups are sorted by their first death
	GroupOrder           template.URL // the page with the other order of the groups
	Spans                []timeSpan
	SpansTitle           string
	SpansMost            int

	query url.Values
	usual map[string]float64 // run time in seconds above which a job counts as slow, by queue
	now   time.Time
	since time.Time // errors that began later are new; zero: by their age
}

// stateTab is a tab for the jobs in one state.
type stateTab struct {
	Label   string
	URL     template.URL
	N       int
	Counted bool
	Chosen  bool
}

// isSlow reports whether a job has run longer than most jobs of its queue.
func isSlow(d *jobsData, j service.Job) bool {
	usual := d.usual[j.Queue]
	return j.State == "leased" && j.LeasedAt != nil && usual > 0 && d.now.Sub(*j.LeasedAt).Seconds() > usual
}

// listPage is a page that lists jobs: all jobs, or the jobs in one state.
type listPage struct {
	path, heading, state, sort, empty string
}

var listPages = map[string]listPage{
	"jobs":    {path: "jobs", heading: "Jobs", sort: "-created", empty: "No job matches."},
	"running": {path: "running", heading: "Running", state: "leased", sort: "leased", empty: "No job is running."},
	"scheduled": {
		path: "scheduled", heading: "Scheduled", state: "scheduled", sort: "due", empty: "No job is scheduled.",
	},
	"retrying": {
		path: "retrying", heading: "Retrying", state: "retrying", sort: "due", empty: "No job waits for another try.",
	},
	"dead": {path: "dead", heading: "Dead", state: "dead", sort: "-died", empty: "No dead jobs."},
}

// jobsPage returns the handler of a page that lists jobs.
func jobsPage(name string) handler {
	p := listPages[name]
	return func(r *request) (*view, error) { return r.jobList(p) }
}

// jobList shows the jobs that match the query.
func (r *request) jobList(p listPage) (*view, error) {
	if r.query.Get("keep") == "columns" {
		return r.keepColumns(p)
	}
	searched, wrong := r.searched()
	if searched != nil {
		return r.back(p.path+"?"+searched.Encode(), "")
	}
	states, fixed := givenStates(r.query), p.state != ""
	if fixed {
		states = []string{p.state}
	}
	filter, problems := jobFilter(r.query, states, r.console.options.Now())
	problems = append(wrong, problems...)
	d := &jobsData{
		Heading: p.heading, Search: r.query.Get("q"), SearchWords: service.SearchWords(), Path: p.path, Empty: p.empty,
		Fixed: fixed, States: states, Problems: problems, query: r.query,
		Filter: r.actionFilter(states).Encode(), Actions: bulkActions(p.state), Columns: r.columns(p.state),
		usual: map[string]float64{},
		now:   r.console.options.Now(),
	}
	if len(filter.Queues) == 1 {
		d.OneQueue = filter.Queues[0]
	}
	sort := cmp.Or(r.query.Get("sort"), p.sort)
	d.Sorts = jobSorts(sort, p.state)
	d.setBar()
	v := &view{page: "jobs", title: p.heading, nav: p.path, data: d}
	if len(problems) == 0 {
		err := r.findJobs(d, filter,
			service.JobPage{Limit: pageRows, Cursor: r.query.Get("cursor"), Sort: sort, Count: true}, p)
		var refused *service.Error
		if errors.As(err, &refused) && refused.Code == service.CodeInvalid {
			d.Problems = append(d.Problems, problemOf(refused))
		} else if err != nil {
			return nil, err
		}
	}
	if len(d.Problems) > 0 {
		v.status, v.still = http.StatusBadRequest, true
	}
	return v, r.setTabs(d, filter)
}

// searched returns the query with the conditions of the search as parameters; nil if there is no search, or if it is
// invalid.
func (r *request) searched() (url.Values, []problem) {
	search := strings.TrimSpace(r.query.Get("q"))
	if search == "" {
		return nil, nil
	}
	found, err := service.ParseSearch(search)
	var refused *service.Error
	if errors.As(err, &refused) {
		return nil, []problem{{"q", "search", refused.Detail}}
	}
	merged := maps.Clone(r.query)
	merged.Del("q")
	merged.Del("cursor")
	for name, values := range found {
		if f := service.FieldNamed(name); f.Many() {
			values = append(given(merged, name), values...)
		}
		merged[name] = values
	}
	return merged, nil
}

// findJobs reads the jobs, their counts and their groups.
func (r *request) findJobs(d *jobsData, filter service.JobFilter, page service.JobPage, p listPage) error {
	grouped := d.Fixed && page.Cursor == "" && (p.state == "dead" || p.state == "retrying")
	if grouped && p.state != "dead" {
		page.Failures = r.groupLimit() + 1
	}
	page.TimeLimit = searchLimit
	list, err := r.service.Jobs(r.Context(), r.caller, filter, page)
	if err != nil {
		return err
	}
	d.Jobs, d.Count, d.Exact, d.Counted = list.Jobs, max(list.Count, len(list.Jobs)), list.CountExact, true
	if len(filterQuery(r.query, nil)) > 0 {
		d.Empty = "No job matches the filter."
	}
	if filter.Worker != "" {
		d.Empty, d.FormerWorker = "No job is leased to the worker "+filter.Worker+" now.", filter.Worker
	}
	here := maps.Clone(r.query)
	here.Del("cursor")
	here.Del("hold")
	if list.Cursor != "" {
		if err := r.setNext(d, here, filter, list); err != nil {
			return err
		}
	} else if page.Cursor != "" && (list.Looked == 0 || list.Count > 0) {
		d.Empty = "No further job matches."
	}
	if page.Cursor != "" {
		d.First = with(here)
	}
	if err := r.setUsual(d); err != nil {
		return err
	}
	if d.Fixed && page.Cursor == "" {
		if err := r.setSpans(d, filter, p); err != nil {
			return err
		}
		if grouped && p.state == "dead" {
			if list.Failures, err = r.countDeaths(d, filter); err != nil {
				return err
			}
		}
		if grouped && list.Count > 0 {
			return r.setGroups(d, filter, list.Failures)
		}
	}
	return nil
}

// searchLimit is the time that a page searches before it shows the progress.
const searchLimit = 200 * time.Millisecond

// setNext sets the link to the next page. For a search that reads jobs it also sets the number of jobs read; the page's
// script continues while none is found.
func (r *request) setNext(d *jobsData, here url.Values, filter service.JobFilter, list service.JobList) error {
	if list.Looked > 0 {
		d.Looked = list.Looked
		all, err := r.service.Jobs(r.Context(), r.caller,
			service.JobFilter{States: filter.States, Queues: filter.Queues},
			service.JobPage{Limit: 1, Brief: true, Count: true})
		if err != nil {
			return err
		}
		if all.CountExact {
			d.Of = max(all.Count, d.Looked)
		}
	}
	d.Next = with(here, "cursor", list.Cursor)
	d.Empty = "No job matches so far. The next page continues the search."
	if len(list.Jobs) == 0 && r.query.Get("hold") == "" {
		d.Continue = d.Next
		d.Hold = with(r.query, "hold", "yes")
	}
	return nil
}

// slowFactor is the multiple of the 95th percentile of run times above which a job is marked as slow.
const slowFactor = 2

// setUsual sets the run times above which jobs count as slow.
func (r *request) setUsual(d *jobsData) error {
	for _, j := range d.Jobs {
		if _, known := d.usual[j.Queue]; known || j.State != "leased" {
			continue
		}
		h, err := r.service.Histograms(r.Context(), r.caller, j.Queue, "")
		if err != nil {
			return err
		}
		if h.Run.Count >= 20 { // fewer runs are not significant
			d.usual[j.Queue] = slowFactor * h.Run.P95S
		} else {
			d.usual[j.Queue] = 0
		}
	}
	return nil
}

// formFields are the conditions that the form always has, besides queue and type. Others are typed into the search.
var formFields = []string{"tag", "error_class", "worker", "created_from", "created_to"}

// setBar sets the values of the filter bar.
func (d *jobsData) setBar() {
	for _, f := range filterFields {
		used := len(given(d.query, f.Name)) > 0
		wrong := slices.ContainsFunc(d.Problems, func(p problem) bool { return p.Name == f.Name })
		if f.Word == "" {
			d.SearchWords = append(d.SearchWords, f.Name)
		}
		if !f.top && (used || wrong || slices.Contains(formFields, f.Name)) {
			d.More = append(d.More, f)
			if used {
				d.MoreUsed++
			}
			d.MoreOpen = d.MoreOpen || wrong
		}
	}
	d.ColumnQuery = maps.Clone(d.query)
	for _, name := range []string{"column", "keep", "cursor"} {
		d.ColumnQuery.Del(name)
	}
	for _, c := range jobColumns {
		chosen := slices.ContainsFunc(d.Columns, func(o jobColumn) bool { return o.Name == c.Name })
		d.AllColumns = append(d.AllColumns, choice{Value: c.Name, Label: c.Label, Chosen: chosen})
	}
	d.Chips = filterChips(d.query)
}

// setTabs sets the tabs of the states. They have counts if the filter has no conditions besides the queue.
func (r *request) setTabs(d *jobsData, filter service.JobFilter) error {
	if d.Fixed {
		return nil
	}
	counts, err := r.stateCounts(filter)
	if err != nil {
		return err
	}
	here := maps.Clone(r.query)
	for _, name := range []string{"cursor", "sort", "state"} {
		here.Del(name)
	}
	d.StateTabs = append(d.StateTabs, stateTab{Label: "All", URL: with(here), Chosen: len(d.States) == 0})
	for _, name := range stateNames {
		n, counted := counts[name]
		d.StateTabs = append(d.StateTabs, stateTab{
			Label: stateLabel(name), URL: with(here, "state", name), N: n, Counted: counted,
			Chosen: slices.Contains(d.States, name),
		})
	}
	return nil
}

// stateCounts returns the broker's counts of jobs by state, for all queues or for one.
func (r *request) stateCounts(f service.JobFilter) (map[string]int, error) {
	only := f
	only.States, only.Queues = nil, nil
	plain := len(filterQuery(r.query, nil)) == 0 || len(f.Queues) == 1 && len(filterQuery(r.query, nil)) == 1
	if !plain {
		return nil, nil
	}
	if len(f.Queues) == 0 {
		sum, err := r.service.Summary(r.Context(), r.caller)
		if service.IsCode(err, service.CodeForbidden) {
			return nil, nil // the caller may see some queues only
		}
		return sum.Jobs, err
	}
	q, err := r.service.Queue(r.Context(), r.caller, f.Queues[0])
	if e := (*service.Error)(nil); errors.As(err, &e) {
		return nil, nil
	}
	return map[string]int{
		"ready": q.Ready, "leased": q.Leased, "scheduled": q.Scheduled, "blocked": q.Blocked, "retrying": q.Retrying,
		"dead": q.Dead, "done": q.Done,
	}, err
}

// keepColumns stores the chosen columns in a cookie (none: the default ones) and redirects to the list.
func (r *request) keepColumns(p listPage) (*view, error) {
	http.SetCookie(r.w, &http.Cookie{
		Name:  columnsCookie(r.URL.Path),
		Value: columnsOwner(r.caller) + "." + strings.Join(given(r.query, "column"), "."), Path: "/",
		MaxAge: 365 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: r.TLS != nil,
	})
	query := maps.Clone(r.query)
	query.Del("column")
	query.Del("keep")
	return r.back(p.path+string(with(query)), "")
}

// columns returns the columns of the query, otherwise the columns that the same person has chosen for this page in this
// browser.
func (r *request) columns(state string) []jobColumn {
	names := given(r.query, "column")
	if kept, err := r.Cookie(columnsCookie(r.URL.Path)); err == nil && len(names) == 0 {
		if whose, list, ok := strings.Cut(kept.Value, "."); ok && whose == columnsOwner(r.caller) {
			names = strings.Split(list, ".")
		}
	}
	var chosen []jobColumn
	for _, c := range jobColumns {
		if slices.Contains(names, c.Name) {
			chosen = append(chosen, c)
		}
	}
	switch {
	case len(chosen) > 0:
	case state == "leased":
		chosen = slices.Clone(runningColumns)
	case state != "":
		chosen = slices.Clone(oneStateColumns)
	default:
		return usualColumns
	}
	for i := range chosen {
		if label := whenLabels[state]; label != "" && chosen[i].Name == "when" {
			chosen[i].Label = label
		}
	}
	return chosen
}

// whenLabels are the heads of the column of times, in lists of jobs in one state.
var whenLabels = map[string]string{"leased": "Started", "scheduled": "Due", "retrying": "Next try", "dead": "Died"}

// jobSorts lists the sort orders of a list.
func jobSorts(chosen, state string) []choice {
	newest := []string{"-created", "newest first", "created", "oldest first"}
	var own []string
	switch state {
	case "scheduled", "retrying":
		own = []string{"due", "due first", "-due", "due last"}
	case "leased":
		own = []string{"leased", "running longest", "-leased", "started last"}
	case "dead":
		own = []string{"-died", "died last", "died", "died first"}
	default:
		own = []string{
			"queue", "ready: next out first", "due", "due first", "leased", "running longest", "-died", "died last",
			"-finished", "finished last",
		}
		return choices(chosen, append(newest, own...)...)
	}
	return choices(chosen, append(own, newest...)...)
}
