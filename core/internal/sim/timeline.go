package sim

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"broker/core"
)

// history is the timeline of a job after a change, from a commit on.
type history struct {
	timeline *core.Timeline
	made     core.Commit
}

// recordHistory checks that the change of a job is in its timeline at once, and records the timeline.
func (p *promise) recordHistory(i *core.JobInfo, made core.Commit) error {
	if p.ephemeral {
		return nil
	}
	inOrder := func(a, b core.TimelineEntry) int { return cmp.Compare(a.Number, b.Number) }
	switch t := i.Timeline; {
	case t == nil || t.Count <= t.Length && !slices.ContainsFunc(t.Entries, changes):
		return fmt.Errorf("job %d was changed, and its timeline is %+v", p.seq, t)
	case !slices.IsSortedFunc(t.Entries, inOrder):
		return fmt.Errorf("the timeline of job %d is out of order: %+v", p.seq, t)
	}
	if last := len(p.past) - 1; last >= 0 && p.past[last].made == made {
		p.past = p.past[:last]
	}
	p.past = append(p.past, history{i.Timeline, made})
	return nil
}

// changes reports whether an entry is of a change. The entries after it are what the change led to.
func changes(e core.TimelineEntry) bool {
	return e.Kind == core.EventChanged || e.Kind == core.EventMoved
}

// historyAfterCrash checks that the timeline goes on from the newest one that was acknowledged.
func (p *promise) historyAfterCrash(i *core.JobInfo, committed core.Commit) error {
	past := p.past
	p.past = nil
	for _, h := range slices.Backward(past) {
		if h.made <= committed {
			return samePast(p.seq, h.timeline, i.Timeline)
		}
	}
	return nil
}

// samePast checks that one timeline is the beginning of another, as far as both have the entries.
func samePast(seq uint64, one, other *core.Timeline) error {
	if one == nil {
		return nil
	}
	if other == nil || other.Count < one.Count {
		return fmt.Errorf("the timeline of job %d was %+v and is %+v", seq, one, other)
	}
	have := map[uint32]core.TimelineEntry{}
	for _, e := range other.Entries {
		have[e.Number] = e
	}
	for _, e := range one.Entries {
		if is, there := have[e.Number]; there != other.Keeps(e.Number) || there && !reflect.DeepEqual(is, e) {
			return fmt.Errorf("in the timeline of job %d was %+v and is %+v", seq, e, is)
		}
	}
	return nil
}
