package sqs

import (
	"cmp"
	"net/http"
	"slices"
	"sync/atomic"
	"time"
)

// ActionCount counts the requests with an action by result, and the time of their replies including long polls.
type ActionCount struct {
	Action                string
	Done, Refused, Failed uint64
	Took                  time.Duration
}

// noAction stands for requests without a valid action, and for requests whose signature was refused before they were
// read.
const noAction = "(none)"

// meter counts requests by action. All actions are known in advance.
type meter map[string]*actionMeter

type actionMeter struct {
	done, refused, failed atomic.Uint64
	took                  atomic.Int64 // nanoseconds
}

func newMeter() meter {
	m := meter{noAction: {}}
	for action := range commands {
		m[action] = &actionMeter{}
	}
	return m
}

// count counts a reply.
func (m meter) count(action string, status int, took time.Duration) {
	a := m[action]
	if a == nil {
		a = m[noAction]
	}
	switch {
	case status < http.StatusBadRequest:
		a.done.Add(1)
	case status < http.StatusInternalServerError:
		a.refused.Add(1)
	default:
		a.failed.Add(1)
	}
	a.took.Add(int64(max(took, 0)))
}

// add adds counts of another node.
func (m meter) add(counts []ActionCount) {
	for _, c := range counts {
		if a := m[c.Action]; a != nil {
			a.done.Add(c.Done)
			a.refused.Add(c.Refused)
			a.failed.Add(c.Failed)
			a.took.Add(int64(max(c.Took, 0)))
		}
	}
}

// take returns the counts of the used actions and sets them to zero.
func (m meter) take() []ActionCount {
	return m.list(func(a *actionMeter) ActionCount {
		return ActionCount{
			Done: a.done.Swap(0), Refused: a.refused.Swap(0), Failed: a.failed.Swap(0),
			Took: time.Duration(a.took.Swap(0)),
		}
	})
}

// Actions returns the counts of the used actions, by name.
func (f *Frontend) Actions() []ActionCount {
	return f.meter.list(func(a *actionMeter) ActionCount {
		return ActionCount{
			Done: a.done.Load(), Refused: a.refused.Load(), Failed: a.failed.Load(), Took: time.Duration(a.took.Load()),
		}
	})
}

// list returns what of returns for the used actions, by name.
func (m meter) list(of func(*actionMeter) ActionCount) []ActionCount {
	var all []ActionCount
	for action, a := range m {
		c := of(a)
		c.Action = action
		if c.Done+c.Refused+c.Failed > 0 {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b ActionCount) int { return cmp.Compare(a.Action, b.Action) })
	return all
}
