package service

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"broker/access"
	"broker/core"
)

// JobFilter selects jobs. All conditions that are set must hold.
type JobFilter struct {
	States, Queues, Types, Origins, Tags       []string // one of these; all of the tags
	QueuePrefix, Worker, ErrorClass            string
	FailureGroup, Batch, Parent, Workflow      string
	Version                                    string
	UniqueKey, IDPrefix, Operation             string
	Text, BodyText, Anywhere                   string
	FailedBy                                   string // the worker that has reported the last failure
	HoldsKey                                   bool   // holds any unique key
	CancelRequested                            bool   // leased, and its worker is asked to stop
	CreatedFrom, CreatedTo, DueFrom, DueTo     time.Time
	DiedFrom, DiedTo, FinishedFrom, FinishedTo time.Time
	MinPriority, MaxPriority                   *int64
}

// String is the text for the audit log: the conditions that are set, in the form of a query.
func (f *JobFilter) String() string {
	var parts []string
	for i := range FilterFields {
		field := &FilterFields[i]
		if values := strings.Join(field.values(f), ","); values != "" {
			parts = append(parts, field.Name+"="+values)
		}
	}
	return strings.Join(parts, " ")
}

// coreFilter converts a filter for the core.
func (s *Service) coreFilter(ctx context.Context, c *session, f *JobFilter) (core.Filter, error) {
	out := core.Filter{
		Queues: f.Queues, QueuePrefix: f.QueuePrefix, Types: f.Types, Worker: f.Worker, Tags: f.Tags,
		UniqueKeys: uniqueKeys(f.UniqueKey), HoldsKey: f.HoldsKey, CancelRequested: f.CancelRequested,
		IDPrefix: f.IDPrefix, FailedBy: f.FailedBy, Text: f.Text, BodyText: f.BodyText, Anywhere: f.Anywhere,
		Created: rangeOf(f.CreatedFrom, f.CreatedTo), Due: rangeOf(f.DueFrom, f.DueTo),
		Died:     rangeOf(f.DiedFrom, f.DiedTo),
		Finished: rangeOf(f.FinishedFrom, f.FinishedTo), MinPriority: f.MinPriority, MaxPriority: f.MaxPriority,
	}
	out.ErrorClass, out.NoErrorClass = nameOrNone(f.ErrorClass)
	out.FailureGroup, out.NoFailureGroup = nameOrNone(f.FailureGroup)
	out.Version, out.NoVersion = nameOrNone(f.Version)
	var err error
	if out.States, err = ParseStates(f.States); err != nil {
		return out, err
	}
	if f.Operation != "" {
		if out.Seqs, err = s.changedBy(c.caller, f.Operation); err != nil {
			return out, err
		}
	}
	for _, name := range f.Origins {
		p, err := parseOrigin(name)
		if err != nil {
			return out, err
		}
		out.Origins = append(out.Origins, p)
	}
	if f.Batch != "" {
		if out.Batch, err = s.parseBatchName(f.Batch); err != nil {
			return out, invalid("batch", "%v", err)
		}
	}
	if f.Parent != "" {
		if out.Parent, err = s.seqOf(ctx, c, access.Read, f.Parent, "parent"); err != nil {
			return out, err
		}
	}
	if f.Workflow != "" {
		if out.Workflow, err = s.parseBatchName(f.Workflow); err != nil {
			out.Workflow, err = s.seqOf(ctx, c, access.Read, f.Workflow, "workflow")
		}
	}
	return out, err
}

// uniqueKeys are the forms in which the store may have a unique key: as HTTP clients give it, or marked as one of
// another protocol.
func uniqueKeys(key string) []string {
	if key == "" {
		return nil
	}
	return []string{key, core.GearmanKey + key, core.WorkqKey + key}
}

// none is the value of a filter for jobs without an error class, or without a failure group.
const none = "none"

// nameOrNone reads the value of a filter. Text in double quotes is always a name, even "none".
func nameOrNone(value string) (name string, isNone bool) {
	if value == none {
		return "", true
	}
	if len(value) > 2 && value[0] == '"' && value[len(value)-1] == '"' {
		return value[1 : len(value)-1], false
	}
	return value, false
}

// FilterValue is the filter value for an error class or failure group; for an empty one it selects the jobs without
// one.
func FilterValue(name string) string {
	switch {
	case name == "":
		return none
	case name == none, strings.HasPrefix(name, `"`), strings.TrimSpace(name) == "":
		return `"` + name + `"`
	}
	return name
}

func rangeOf(from, to time.Time) core.Range {
	return core.Range{From: core.InstantOf(from), To: core.InstantOf(to)}
}

// ParseStates reads names of states.
func ParseStates(names []string) (states []core.State, err error) {
	for _, name := range names {
		i := slices.IndexFunc(core.States[:], func(s core.State) bool { return s.String() == name })
		if i < 0 {
			return nil,
				invalid("state", "%q is not one of scheduled, blocked, ready, leased, retrying, done, dead", name)
		}
		states = append(states, core.States[i])
	}
	return states, nil
}

func parseOrigin(name string) (core.Protocol, error) {
	p, known := core.ParseProtocol(name)
	if !known {
		return 0, invalid("origin", "%q is not one of internal, %s", name, strings.Join(core.ProtocolNames(), ", "))
	}
	return p, nil
}

// jobOrders are the orders of lists of jobs, by name.
var jobOrders = map[string]core.Order{
	"created": core.OrderCreated, "queue": core.OrderQueue, "due": core.OrderDue, "leased": core.OrderLeased,
	"died": core.OrderDied, "finished": core.OrderFinished,
}

// JobPage selects a part of a list.
type JobPage struct {
	Sort   string // one of jobOrders, with - in front from the other end; empty: created
	Limit  int
	Cursor string
	Count  bool // count all that match

	TimeLimit time.Duration // of the search for a full page; zero: five seconds

	Brief    bool // only data in memory: no body, and no failure message from the store
	Failures int  // count retrying and dead jobs by failure group and type, with at most this many groups
}

// JobList is a page of jobs.
type JobList struct {
	Jobs       []Job
	Cursor     string // empty on the last page
	Count      int
	CountExact bool
	Failures   []FailureCount // nil: not requested, or not counted for this filter; see core.Find

	Looked int // number of jobs read for this page and those before it, if the filter has no index
}

// FailureCount is the number of jobs with a failure group and type.
type FailureCount struct {
	Group string `json:"failure_group" doc:"empty: none"`
	Type  string `json:"type"`
	Jobs  int    `json:"jobs"`
	Died  []int  `json:"died_per_hour,omitempty" doc:"deaths in each clock hour (UTC) of the range of deaths, at most the last 744; without a range, in the last 24 hours"`

	FirstHour *time.Time     `json:"first_hour,omitempty" doc:"clock hour in which the first of the dead jobs died"`
	LastHour  *time.Time     `json:"last_hour,omitempty" doc:"clock hour in which the last of the dead jobs died"`
	Versions  []VersionCount `json:"versions,omitempty" doc:"the same by the version of the last worker; at most 8, largest first"`
}

// VersionCount is the part of a FailureCount whose jobs were last leased by workers of one version.
type VersionCount struct {
	Version   string     `json:"worker_version" doc:"empty: the workers name none"`
	Jobs      int        `json:"jobs"`
	Died      []int      `json:"died_per_hour,omitempty"`
	FirstHour *time.Time `json:"first_hour,omitempty"`
	LastHour  *time.Time `json:"last_hour,omitempty"`
}

func failureCountOf(f *core.FailureCount) FailureCount {
	count := FailureCount{
		Group: text(f.Group), Type: text(f.Type), Jobs: f.Jobs, Died: f.Died, FirstHour: timeOf(f.FirstHour),
		LastHour: timeOf(f.LastHour),
	}
	for _, v := range f.Versions {
		count.Versions = append(count.Versions, VersionCount{
			text(v.Version), v.Jobs, v.Died, timeOf(v.FirstHour), timeOf(v.LastHour),
		})
	}
	return count
}

// searchFor limits the search for a page of jobs. A filter without an index that matches few of many millions of jobs
// takes longer. Then the page is short or empty, and has a cursor.
const searchFor = 5 * time.Second

// Jobs lists jobs without their bodies, of the queues that the caller may read.
func (s *Service) Jobs(ctx context.Context, caller Caller, f JobFilter, p JobPage) (JobList, error) {
	list := JobList{Jobs: make([]Job, 0, min(p.Limit, 100))}
	name, desc := strings.CutPrefix(p.Sort, "-")
	order, ok := jobOrders[name]
	if !ok && name != "" {
		return list, invalid("sort",
			"sort must be one of created, queue, due, leased, died or finished, with - in front for the reverse order")
	}
	for _, queue := range f.Queues {
		if err := caller.may(access.Read, queue); err != nil {
			return list, err
		}
	}
	c := s.open(caller)
	defer c.Close()
	filter, err := s.coreFilter(ctx, c, &f)
	if err != nil {
		return list, err
	}
	if len(filter.States) == 0 && order != core.OrderCreated {
		filter.States = order.States()
	}
	if !caller.readsAll() {
		filter.Within = caller.readable()
	}
	from, err := startOfPage(p.Cursor)
	if err != nil {
		return list, err
	}
	count, deadline := p.Count, s.Now().Add(cmp.Or(p.TimeLimit, searchFor))
	for cursor := from.At; ; {
		r, err := c.call(ctx, &core.Find{
			Filter: filter, Order: order, Desc: desc, Cursor: cursor, Limit: p.Limit - len(list.Jobs), WithCount: count,
			WithFailures: p.Failures, Brief: p.Brief,
		})
		if err != nil {
			return list, findError(err, p.Cursor)
		}
		if count {
			list.Count, list.CountExact, count = r.Count, r.CountExact, false
		}
		if p.Failures > 0 && r.Failures != nil {
			list.Failures, p.Failures = []FailureCount{}, 0
			for i := range r.Failures {
				list.Failures = append(list.Failures, failureCountOf(&r.Failures[i]))
			}
		}
		from.Looked += r.Looked
		for i := range r.Jobs {
			list.Jobs = append(list.Jobs, s.viewOf(&r.Jobs[i]))
		}
		cursor = r.NextCursor
		if cursor == "" || len(list.Jobs) >= p.Limit || r.Stopped && len(list.Jobs) > 0 || s.Now() >= deadline ||
			ctx.Err() != nil {
			from.At = cursor
			list.endPage(from, p.Count)
			return list, context.Cause(ctx)
		}
	}
}

// searchPrefix begins a cursor that is a searchCursor; others are cursors of the core.
const searchPrefix = "search."

// searchCursor is a position in a list for which jobs are read, with what was read and found before.
type searchCursor struct {
	At     string `json:"at"`
	Looked int    `json:"looked"`
	Found  int    `json:"found"`
}

func startOfPage(cursor string) (at searchCursor, err error) {
	of, searches := strings.CutPrefix(cursor, searchPrefix)
	if !searches {
		return searchCursor{At: cursor}, nil
	}
	return at, decodeCursor(of, &at)
}

// endPage sets the cursor of a page. A search also counts the jobs that it has found so far: its count grows from page
// to page, and is exact on the last one.
func (l *JobList) endPage(at searchCursor, counted bool) {
	l.Cursor, l.Looked = at.At, at.Looked
	if at.Looked == 0 {
		return
	}
	at.Found += len(l.Jobs)
	if l.Cursor != "" {
		l.Cursor = searchPrefix + encodeCursor(at)
	}
	if counted {
		l.Count, l.CountExact = at.Found, l.Cursor == ""
	}
}

// findError returns the error for an invalid search.
func findError(err error, cursor string) error {
	if !IsCode(err, CodeState) {
		return err
	}
	if cursor != "" {
		return invalid("cursor", "cursor is not one that this list has returned")
	}
	return invalid("sort", "jobs in these states have no place in this order")
}
