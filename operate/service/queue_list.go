package service

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"broker/access"
	"broker/core"
)

// QueueFilter selects and orders queues.
type QueueFilter struct {
	Prefix string
	Search string // anywhere in the name
	Only   string // one of QueueConditions; empty: all
	Sort   string // name, or a counter; with a minus in front, the largest first
	Limit  int
	Cursor string
}

// queueSort is an order of a list of queues.
type queueSort struct {
	of       core.QueueMeasure
	byName   bool
	reversed bool // the order is reversed: the largest number comes first
}

// queueSorts are the orders of a list of queues. Queues with equal numbers are sorted by name.
var queueSorts = map[string]queueSort{
	"name":      {byName: true},
	"ready":     {of: core.QueueReady},
	"scheduled": {of: core.QueueScheduled},
	"leased":    {of: core.QueueLeased},
	"retrying":  {of: core.QueueRetrying},
	"blocked":   {of: core.QueueBlocked},
	"done":      {of: core.QueueDone},
	"dead":      {of: core.QueueDead},
	"latency":   {of: core.QueueNextAt, reversed: true},
}

// queueCursor is a position in a list of queues: after the queue with this name and, if the list is not sorted by name,
// this value.
type queueCursor struct {
	Name  []byte `json:"n"` // not always UTF-8
	Value int64  `json:"v,omitempty"`
}

// Queues lists the queues that the caller may read. The cursor is empty on the last page.
func (s *Service) Queues(ctx context.Context, caller Caller, f QueueFilter) ([]Queue, string, error) {
	name, down := strings.CutPrefix(cmp.Or(f.Sort, "name"), "-")
	sort, ok := queueSorts[name]
	if !ok {
		return nil, "", invalid("sort",
			"sort must be one of name, ready, scheduled, leased, retrying, blocked, done, dead or latency, with - in front for the largest first")
	}
	var after queueCursor
	if err := decodeCursor(f.Cursor, &after); err != nil {
		return nil, "", err
	}
	if f.Only != "" && !slices.Contains(QueueConditions, f.Only) {
		return nil, "", invalid("only", "only must be one of %s", strings.Join(QueueConditions, ", "))
	}
	c := s.open(caller)
	defer c.Close()
	if sort.byName && !down {
		return s.queuesByName(ctx, c, &f, string(after.Name))
	}
	top := topQueues{limit: f.Limit + 1, compare: sort.compare(down)}
	if f.Cursor != "" {
		top.after = &core.QueueValue{Value: after.Value, Name: string(after.Name)}
	}
	choose := s.chooseQueues
	if f.Only != "" {
		choose = s.chooseQueuesOnly
	}
	if err := choose(ctx, c, &f, sort, &top); err != nil {
		return nil, "", err
	}
	page, next := top.sorted(), ""
	if len(page) > f.Limit {
		page = page[:f.Limit]
		last := page[f.Limit-1]
		next = encodeCursor(queueCursor{[]byte(last.Name), last.Value})
	}
	list, err := s.queuesNamed(ctx, c, page)
	return list, next, err
}

// chooseQueues passes the number of each matching queue to top. It reads the queues in pages, so that other clients do
// not have to wait.
func (s *Service) chooseQueues(ctx context.Context, c *session, f *QueueFilter, sort queueSort, top *topQueues) error {
	all := f.Search == "" && c.caller.readsAll()
	for after := ""; ; {
		r, err := c.call(ctx, &core.ListQueueValues{Prefix: f.Prefix, After: after, Limit: corePage, Of: sort.of})
		if err != nil {
			return err
		}
		for _, v := range r.QueueValues {
			if sort.byName {
				v.Value = 0
			}
			if top.wants(v) && (all || f.matches(c.caller, v.Name)) {
				top.add(v)
			}
		}
		if len(r.QueueValues) < corePage {
			return nil
		}
		after = r.QueueValues[corePage-1].Name
	}
}

// QueueConditions are the conditions by which queues are listed. Unserved: jobs wait and there is no worker. Limited: a
// limit holds back the next job. Stuck: jobs have waited for more than a minute, and none runs.
var QueueConditions = []string{"paused", "unserved", "limited", "stuck"}

// stuckAfter is how long a job waits in a queue that is stuck.
const stuckAfter = time.Minute

// isIn reports whether a queue is in a condition.
func (s *Service) isIn(ctx context.Context, c *session, condition string, q *core.QueueInfo) (bool, error) {
	switch condition {
	case "paused":
		return q.Paused, nil
	case "unserved":
		return q.Ready() > 0 && !q.Paused && q.Workers == 0, nil
	case "stuck":
		return q.Ready() > 0 && q.Leased == 0 && q.OldestAge >= stuckAfter, nil
	case "limited":
		if q.Ready() == 0 || q.Paused {
			return false, nil
		}
		next := core.Filter{Queues: []string{q.Name}, States: []core.State{core.Ready}}
		r, err := c.call(ctx, &core.Find{Filter: next, Order: core.OrderQueue, Limit: 1, Brief: true})
		return err == nil && len(r.Jobs) > 0 && r.Jobs[0].Reason == core.WaitLimit, err
	}
	return true, nil
}

// chooseQueuesOnly is chooseQueues for the queues in a condition.
func (s *Service) chooseQueuesOnly(
	ctx context.Context, c *session, f *QueueFilter, sort queueSort, top *topQueues,
) error {
	for after := ""; ; {
		r, err := c.call(ctx, &core.ListQueues{Prefix: f.Prefix, After: after, Limit: corePage})
		if err != nil {
			return err
		}
		for i := range r.Queues {
			q := &r.Queues[i]
			v := core.QueueValue{Name: q.Name, Value: sort.valueOf(q)}
			if !top.wants(v) || !f.matches(c.caller, q.Name) {
				continue
			}
			if is, err := s.isIn(ctx, c, f.Only, q); err != nil {
				return err
			} else if is {
				top.add(v)
			}
		}
		if len(r.Queues) < corePage {
			return nil
		}
		after = r.Queues[corePage-1].Name
	}
}

// valueOf is the number by which a queue is sorted.
func (o queueSort) valueOf(q *core.QueueInfo) int64 {
	if o.byName {
		return 0
	}
	switch o.of {
	case core.QueueReady:
		return int64(q.Ready())
	case core.QueueScheduled:
		return int64(q.Scheduled)
	case core.QueueLeased:
		return int64(q.Leased)
	case core.QueueRetrying:
		return int64(q.Retrying)
	case core.QueueBlocked:
		return int64(q.Blocked)
	case core.QueueDone:
		return int64(q.Done)
	case core.QueueDead:
		return int64(q.Dead)
	case core.QueueNextAt:
		if q.NextEnqueuedAt != 0 {
			return int64(q.NextEnqueuedAt)
		}
	}
	return math.MaxInt64 // no job is ready
}

// queuesNamed shows queues. It skips queues that no longer exist.
func (s *Service) queuesNamed(ctx context.Context, c *session, named []core.QueueValue) ([]Queue, error) {
	views := make([]Queue, 0, len(named))
	for _, v := range named {
		q, err := s.queueAlone(ctx, c, v.Name)
		switch {
		case IsCode(err, CodeQueueNotFound):
			continue
		case err != nil:
			return nil, err
		}
		q.Sharing, q.Redrive = nil, nil
		views = append(views, q)
	}
	return views, nil
}

// queuesByName reads queues in the order of the core until the page is full.
func (s *Service) queuesByName(ctx context.Context, c *session, f *QueueFilter, after string) ([]Queue, string, error) {
	size := f.Limit + 1
	if f.Search != "" || f.Only != "" || !c.caller.readsAll() {
		size = corePage
	}
	var found []core.QueueInfo
	for {
		r, err := c.call(ctx, &core.ListQueues{Prefix: f.Prefix, After: after, Limit: size})
		if err != nil {
			return nil, "", err
		}
		for i := range r.Queues {
			if !f.matches(c.caller, r.Queues[i].Name) {
				continue
			}
			if is, err := s.isIn(ctx, c, f.Only, &r.Queues[i]); err != nil {
				return nil, "", err
			} else if !is {
				continue
			}
			if len(found) == f.Limit {
				return s.queuesOf(found), encodeCursor(queueCursor{Name: []byte(found[f.Limit-1].Name)}), nil
			}
			found = append(found, r.Queues[i])
		}
		if len(r.Queues) < size {
			return s.queuesOf(found), "", nil
		}
		after = r.Queues[size-1].Name
	}
}

func (f *QueueFilter) matches(caller Caller, name string) bool {
	return strings.Contains(name, f.Search) && caller.may(access.Read, name) == nil
}

func (s *Service) queuesOf(infos []core.QueueInfo) []Queue {
	views := make([]Queue, len(infos))
	for i := range infos {
		views[i] = s.queueOf(&infos[i])
	}
	return views
}

// compare orders queues; down starts with the largest.
func (o queueSort) compare(down bool) func(a, b core.QueueValue) int {
	switch {
	case o.byName && down:
		return func(a, b core.QueueValue) int { return strings.Compare(b.Name, a.Name) }
	case down != o.reversed:
		return func(a, b core.QueueValue) int {
			return cmp.Or(cmp.Compare(b.Value, a.Value), strings.Compare(a.Name, b.Name))
		}
	}
	return func(a, b core.QueueValue) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value), strings.Compare(a.Name, b.Name))
	}
}

// topQueues keeps the first queues of a list of any length, so that a page needs little memory and no sort of all
// queues.
type topQueues struct {
	limit   int // number of queues to keep
	compare func(a, b core.QueueValue) int
	after   *core.QueueValue // the list begins after it; nil: with the first queue
	kept    []core.QueueValue
	worst   *core.QueueValue // last of the first limit queues; nil: there are fewer
}

// wants reports whether a queue may be among the first.
func (t *topQueues) wants(q core.QueueValue) bool {
	return (t.worst == nil || t.compare(q, *t.worst) < 0) && (t.after == nil || t.compare(q, *t.after) > 0)
}

func (t *topQueues) add(q core.QueueValue) {
	if t.kept = append(t.kept, q); len(t.kept) == 2*t.limit {
		t.cut()
	}
}

// cut drops all but the first queues.
func (t *topQueues) cut() {
	slices.SortFunc(t.kept, t.compare)
	if len(t.kept) >= t.limit {
		t.kept = t.kept[:t.limit]
		worst := t.kept[t.limit-1]
		t.worst = &worst
	}
}

func (t *topQueues) sorted() []core.QueueValue {
	t.cut()
	return t.kept
}
