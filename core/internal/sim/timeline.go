package sim

import (
	"fmt"
	"reflect"

	"broker/core"
)

// annotate adds a note to a job's timeline, and checks that it is there at once.
func (w *world) annotate(p *promise) error {
	op := &core.Annotate{
		Tag: w.newTag(), Ref: core.Ref{Seq: p.seq}, If: w.condition(), Text: fmt.Sprint("note ", w.number),
		Fields: []byte{1, 2},
	}
	return w.doIf(p, op, op.If, func(r core.Reply) error {
		write(&p.notes, op.Text, w.commitOf(r, true))
		i := w.look(p.seq)
		if i == nil {
			return nil // it was due for removal
		}
		if last := i.Timeline.Entries[len(i.Timeline.Entries)-1]; last.Text != op.Text || last.Kind != core.EventNoted {
			return fmt.Errorf("job %d has %+v at the end of its timeline after note %q", p.seq, last, op.Text)
		}
		return nil
	})
}

// notesAfterCrash looks for notes that were acknowledged.
func (p *promise) notesAfterCrash(i *core.JobInfo, committed core.Commit) error {
	have := map[string]bool{}
	if i.Timeline != nil {
		for n, e := range i.Timeline.Entries {
			have[e.Text] = true
			if n > 0 && e.Number <= i.Timeline.Entries[n-1].Number {
				return fmt.Errorf("the timeline of job %d is out of order: %+v", p.seq, i.Timeline)
			}
		}
		if i.Timeline.Count > i.Timeline.Length {
			p.notes = nil // the note may not be kept
		}
	}
	for _, note := range p.notes {
		if note.made <= committed && !have[note.text] {
			return fmt.Errorf("job %d has lost %q of commit %d, %d: %+v", p.seq, note.text, note.made, committed,
				i.Timeline)
		}
	}
	p.notes = nil
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
