package table

import (
	"cmp"
	"slices"
	"time"

	"broker/core"
	"broker/core/internal/queue"
)

// groupIndex finds retrying and dead jobs by their failure group: the group named by the failure, otherwise its type.
// The number of the group is stored in the field for the holder of a leased job, so a group only costs its list.
type groupIndex struct {
	Names NameTable
	Jobs  []queue.List // by number, in the order of Seq

	Counts map[FailureKey]int // of listed jobs; only jobs that fail or are killed cost time here
	Deaths map[FailureKey]*Deaths
}

// Deaths counts the listed dead jobs with one key by the clock hour of their death, the oldest hour first.
type Deaths struct{ hours []hourCount }

// hourCount is a number of jobs, at least 1, that died in an hour.
type hourCount struct {
	hour int64
	jobs int
}

// hourOf is the number of the clock hour of an instant.
func hourOf(at core.Instant) int64 { return int64(at) / int64(core.Instant(0).Add(time.Hour)) }

// add adds n to the count of the hour of an instant.
func (d *Deaths) add(at core.Instant, n int) {
	hour := hourOf(at)
	i, found := len(d.hours)-1, false
	if found = i >= 0 && d.hours[i].hour == hour; !found { // usually the last one
		byHour := func(x hourCount, h int64) int { return cmp.Compare(x.hour, h) }
		i, found = slices.BinarySearchFunc(d.hours, hour, byHour)
	}
	if !found {
		d.hours = slices.Insert(d.hours, i, hourCount{hour: hour})
	}
	if d.hours[i].jobs += n; d.hours[i].jobs == 0 {
		d.hours = slices.Delete(d.hours, i, i+1)
	}
}

// AddTo adds the counts of hours to sums, whose first element stands for the hour of from. Jobs that died after the
// last one count there if open is set, because the clock may have been set back.
func (d *Deaths) AddTo(sums []int, from core.Instant, open bool) {
	last := len(sums) - 1
	for i := len(d.hours) - 1; i >= 0; i-- {
		at := int(d.hours[i].hour - hourOf(from))
		if at < 0 {
			return
		}
		if at <= last || open {
			sums[min(at, last)] += d.hours[i].jobs
		}
	}
}

// Within returns the number of jobs that died in a range of whole hours.
func (d *Deaths) Within(r core.Range) (n int) {
	for i := len(d.hours) - 1; i >= 0 && d.hours[i].start() >= r.From; i-- {
		if r.Contains(d.hours[i].start()) {
			n += d.hours[i].jobs
		}
	}
	return n
}

// First and Last return the beginnings of the first and last hours in which one of the jobs died.
func (d *Deaths) First() core.Instant { return d.hours[0].start() }

func (d *Deaths) Last() core.Instant { return d.hours[len(d.hours)-1].start() }

// start is the beginning of the hour.
func (h hourCount) start() core.Instant {
	return core.Instant(h.hour * int64(core.Instant(0).Add(time.Hour)))
}

// FailureKey is the key by which retrying and dead jobs are counted.
type FailureKey struct {
	State                       core.State
	Group, Kind, Queue, Version uint32
}

// CountFailure adds n to the count of a job's group, type and version, if the job is listed as retrying or dead. Call
// it with -1 before the group or the type of such a job changes, and with 1 afterwards.
func (t *Table) CountFailure(h uint32, e *Entry, n int) {
	if !e.Has(Listed) || e.State != core.Retrying && e.State != core.Dead {
		return
	}
	key := t.failureKey(h, e)
	if t.Groups.Counts[key] += n; t.Groups.Counts[key] == 0 {
		delete(t.Groups.Counts, key)
	}
	if e.State != core.Dead {
		return
	}
	d := t.Groups.Deaths[key]
	if d == nil {
		d = &Deaths{}
		t.Groups.Deaths[key] = d
	}
	if d.add(e.ListedAt(), n); len(d.hours) == 0 {
		delete(t.Groups.Deaths, key)
	}
}

// failureKey is the key by which a retrying or dead job is counted.
func (t *Table) failureKey(h uint32, e *Entry) FailureKey {
	return FailureKey{e.State, e.Holder, e.Kind, e.Queue, t.VersionNumber(h)}
}

// groupOf is the failure group of a failure; empty: none.
func groupOf(f *core.Failure) string { return cmp.Or(f.Group, f.Type) }

// ForgetPriorFailure says that the failure with which a job was submitted is no longer its last failure.
func (t *Table) ForgetPriorFailure(h uint32) {
	if x := t.Optional(h); x != nil {
		x.priorGroup = ""
	}
}

// HasPriorFailure reports whether the last failure of a job is the failure with which it was submitted.
func (t *Table) HasPriorFailure(h uint32) bool {
	x := t.Optional(h)
	return x != nil && x.priorGroup != ""
}

// joinGroup adds a job to its failure group, if it has one.
func (t *Table) joinGroup(h uint32, e *Entry) {
	name := ""
	if x := t.Optional(h); x != nil {
		name = x.priorGroup
	}
	if n := t.Transient(h); e.Has(HasTransient) && n.Failure != nil {
		name = groupOf(n.Failure)
	}
	t.JoinGroupNamed(h, e, name)
}

// JoinGroupNamed adds a retrying or dead job to the failure group with a name, unless it is in one.
func (t *Table) JoinGroupNamed(h uint32, e *Entry, name string) {
	g := &t.Groups
	if name == "" || e.Holder != 0 {
		return
	}
	t.CountFailure(h, e, -1)
	e.Holder = g.Names.acquireCopy(name)
	t.CountFailure(h, e, 1)
	for int(e.Holder) >= len(g.Jobs) {
		g.Jobs = append(g.Jobs, queue.List{})
	}
	g.Jobs[e.Holder].Push(h, t.Older)
}

// LeaveGroup removes a job from its failure group.
func (t *Table) LeaveGroup(h uint32, e *Entry) {
	if e.Holder == 0 {
		return
	}
	g := &t.Groups
	g.Jobs[e.Holder].Remove(h, t.Older)
	if g.Names.release(e.Holder) {
		g.Jobs[e.Holder] = queue.List{}
	}
	t.CountFailure(h, e, -1)
	e.Holder = 0
	t.CountFailure(h, e, 1)
}

// GroupName is the failure group of a retrying or dead job.
func (t *Table) GroupName(e *Entry) string {
	switch e.State {
	case core.Retrying, core.Dead:
		return t.Groups.Names.NameOf(e.Holder)
	case core.Gone, core.Scheduled, core.Blocked, core.Ready, core.Leased, core.Done:
	}
	return ""
}

// Older is the order of submission.
func (t *Table) Older(a, b uint32) bool { return t.At(a).Seq < t.At(b).Seq }
