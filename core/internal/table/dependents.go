package table

import (
	"broker/core"
	"broker/core/internal/queue"
)

// Dependents are the jobs that wait for a job, in lists in the order of their numbers: a job is in one of them
// exactly while the other job is in its Waiting. To add or to remove one takes logarithmic time, to count them
// constant time. nil: there are none.
type Dependents [3]*queue.List // nil: empty

// The lists of Dependents.
const (
	waitOn    = iota // jobs that stay blocked when the job dies
	breakable        // jobs with another OnBroken
	keptLinks        // dead jobs with Optional.KeepsLinks
)

// listOf is the list of Dependents in which a job is.
func (x *Optional) listOf() int {
	switch {
	case x.KeepsLinks:
		return keptLinks
	case x.OnBroken == core.BrokenWaits:
		return waitOn
	}
	return breakable
}

func (d *Dependents) len(list int) int {
	if d == nil || d[list] == nil {
		return 0
	}
	return d[list].Len()
}

// Len is the number of dependents.
func (d *Dependents) Len() int { return d.len(waitOn) + d.len(breakable) + d.len(keptLinks) }

// Live is the number of dependents that are not dead.
func (d *Dependents) Live() int { return d.len(waitOn) + d.len(breakable) }

// First returns a dependent; zero: there is none.
func (d *Dependents) First() uint32 {
	for list := range d {
		if d.len(list) > 0 {
			return d[list].Front()
		}
	}
	return 0
}

// FirstBreakable returns a dependent that must not wait for a dead job; zero: there is none.
func (d *Dependents) FirstBreakable() uint32 {
	if d.len(breakable) == 0 {
		return 0
	}
	return d[breakable].Front()
}

// AddDependent adds the job h to the dependents in d.
func (t *Table) AddDependent(d **Dependents, h uint32) {
	if *d == nil {
		*d = &Dependents{}
	}
	list := &(*d)[t.Optional(h).listOf()]
	if *list == nil {
		*list = &queue.List{}
	}
	(*list).Push(h, t.Older)
}

// DropDependent removes the job h from the dependents in d. It panics if h is not one of them.
func (t *Table) DropDependent(d **Dependents, h uint32) {
	list := &(*d)[t.Optional(h).listOf()]
	if !(*list).Remove(h, t.Older) {
		panic("table: a job leaves a list of dependents that it is not in")
	}
	if (*list).Len() > 0 {
		return
	}
	if *list = nil; (*d).Len() == 0 {
		*d = nil
	}
}

// EachLive calls fn for the dependents that are not dead, which must not change meanwhile, until it returns false.
func (d *Dependents) EachLive(fn func(h uint32) bool) { d.each(keptLinks, fn) }

// Each is EachLive for all dependents.
func (d *Dependents) Each(fn func(h uint32) bool) { d.each(len(d), fn) }

// each walks the lists below a number.
func (d *Dependents) each(below int, fn func(h uint32) bool) {
	for list := range below {
		if d.len(list) == 0 {
			continue
		}
		walk := d[list].From(nil)
		for h := walk.Next(); h != 0; h = walk.Next() {
			if !fn(h) {
				return
			}
		}
	}
}
