package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"broker/core"
	"broker/core/archive"
	"broker/core/internal/record"
	"broker/core/internal/store"
)

// Report explains jobs from an archive.
type Report struct {
	Jobs  []History
	Notes []string // where the archive has gaps
}

// History is the history of one job.
type History struct {
	Asked  string // the name that the caller has used
	ID     string // empty: not in the archive
	Queue  string // the last queue
	Type   string
	Events []Event
}

// Event is a decision.
type Event struct {
	At     core.Instant
	Commit uint64
	What   string
	Why    []string
}

// ErrUnknown means that none of the jobs is in the archive.
var ErrUnknown = errors.New(
	"the archive knows no such job; jobs that were submitted and removed within one commit are not in it",
)

// Options say what to explain.
type Options struct {
	Dir  string   // of the archive
	Jobs []string // ids or numbers

	// The limits in the present settings. The archive has only those that operations have set.
	Limits   []core.Limit
	Sharings []core.Sharing
}

// Jobs explains jobs.
func Jobs(ctx context.Context, o Options) (*Report, error) {
	t := &explainer{world: newWorld()}
	t.world.setSettings(o.Limits, o.Sharings)
	for _, asked := range o.Jobs {
		s := &subject{history: History{Asked: asked}, counted: map[uint64]bool{}}
		if n, err := strconv.ParseUint(strings.TrimPrefix(asked, "#"), 10, 64); err == nil {
			s.seq = n
		} else if n, _, ok := core.ParseMintedID(asked); ok {
			s.seq = n
		}
		t.subjects = append(t.subjects, s)
	}
	notes, err := archive.Walk(ctx, o.Dir, t)
	if err != nil {
		return nil, err
	}
	r := &Report{Notes: notes}
	known := false
	for _, s := range t.subjects {
		known = known || s.history.ID != ""
		r.Jobs = append(r.Jobs, s.history)
	}
	if !known {
		return nil, ErrUnknown
	}
	return r, nil
}

// subject is a job that is being explained.
type subject struct {
	history    History
	seq        uint64 // zero: not known yet
	last       job    // as of the last event
	live       bool
	since      core.Instant    // ready since
	counted    map[uint64]bool // jobs that are counted in overtakers
	overtakers overtakers
}

// overtakers are the jobs that ran while another job of their queue waited.
type overtakers struct {
	higher, earlier, later int
	names                  []string
	why                    reasons // why those behind the job passed it; see maxReasons
}

// maxNames limits how many jobs, and how many different reasons, are named. maxReasons limits for how many of the jobs
// that passed a waiting job the reason is looked for: in an ordered queue each look goes over all jobs.
const (
	maxNames   = 5
	maxReasons = 100
)

func (p *overtakers) add(w *world, o, x *job) {
	switch {
	case o.priority > x.priority:
		p.higher++
	case ahead(o, x):
		p.earlier++
	default:
		if p.later++; p.later <= maxReasons && len(p.why) < maxNames {
			p.why.add(w.passedBecause(x, o))
		}
	}
	if len(p.names) < maxNames {
		p.names = append(p.names, o.id)
	}
}

// explainer is an archive.Visitor.
type explainer struct {
	world    *world
	subjects []*subject
}

// Base implements archive.Visitor.
func (t *explainer) Base(ctx context.Context, s *store.Store) error {
	settings := t.world.settings
	t.world = newWorld()
	t.world.settings = settings
	if err := t.world.load(ctx, s); err != nil {
		return err
	}
	for _, x := range t.subjects {
		j := t.find(x)
		at := s.Position()
		switch {
		case j == nil && x.live:
			x.live = false
			x.add(at, "is not there any more in the copy of the store that begins this part of the archive")
		case j != nil && (!x.live || j.state != x.last.state):
			x.add(at, "was "+t.stateText(j)+" when this part of the archive begins")
			x.note(j, t.world)
			x.since = j.readyAt
		}
	}
	return nil
}

// find returns the job of a subject in the world; nil: it does not exist.
func (t *explainer) find(x *subject) *job {
	if x.seq != 0 {
		return t.world.jobs[x.seq]
	}
	for _, j := range t.world.jobs {
		if j.id == x.history.Asked {
			x.seq = j.seq
			return j
		}
	}
	return nil
}

// Entry implements archive.Visitor.
func (t *explainer) Entry(e *record.Entry) error {
	w := t.world
	w.now = e.At
	for _, x := range t.subjects {
		t.becomeReady(x, e.Position)
	}
	for i := range e.Batch.Changes {
		ch := &e.Batch.Changes[i]
		if ch.Job != nil {
			for _, x := range t.subjects {
				if x.seq == 0 && ch.Job.Identity() == x.history.Asked {
					x.seq = ch.Seq
				}
			}
		}
		t.change(e, ch)
	}
	for _, m := range e.Batch.Meta {
		t.setting(e, m)
	}
	for _, x := range t.subjects {
		t.becomeReady(x, e.Position)
	}
	return nil
}

// setting applies a metadata entry, and adds to the subjects' histories when their queue is paused or resumed.
func (t *explainer) setting(e *record.Entry, m core.MetaEntry) {
	w := t.world
	queue, ofQueue := strings.CutPrefix(m.Name, queuePrefix)
	before := ofQueue && w.paused(queue)
	w.set(m)
	if !ofQueue || before == w.paused(queue) {
		return
	}
	what := "queue " + queue + " is paused"
	if before {
		what = "queue " + queue + " goes on"
	}
	for _, x := range t.subjects {
		if x.live && x.last.queue == queue {
			x.add(e.Position, what)
		}
	}
}

// becomeReady adds to the history of a subject that it has become ready, because its time came or a dependency ended.
// No entry records this.
func (t *explainer) becomeReady(x *subject, at record.Position) {
	j := t.world.jobs[x.seq]
	if !x.live || j == nil || x.last.state == core.Ready || t.world.stateOf(j) != core.Ready {
		return
	}
	since := at.At
	if x.last.state != core.Blocked {
		at = record.Position{At: j.readyAt}
		since = j.readyAt
	}
	x.add(at, "became ready", t.queueOf(j)...)
	x.note(j, t.world)
	x.since = since
}

// change applies a change and adds it to the histories of the subjects.
func (t *explainer) change(e *record.Entry, ch *record.Change) {
	w := t.world
	before := job{}
	if old := w.jobs[ch.Seq]; old != nil {
		before = *old
		before.state = w.stateOf(old)
	}
	var after *job
	if ch.Gone {
		w.remove(ch.Seq)
	} else if after = w.put(ch.Seq, ch.Job, ch.Status); after == nil {
		return
	}
	ran := before.state == core.Ready && (after == nil || after.state == core.Leased || after.state == core.Done)
	for _, x := range t.subjects {
		if x.seq == ch.Seq {
			t.report(x, e, ch, &before, after)
		} else if cur := w.jobs[x.seq]; ran && cur != nil && cur.queue == before.queue &&
			w.stateOf(cur) == core.Ready && !x.counted[ch.Seq] {
			x.counted[ch.Seq] = true
			if after != nil {
				before.worker = after.worker
			}
			x.overtakers.add(w, &before, cur)
		}
	}
}

// note remembers the current state of a job.
func (x *subject) note(j *job, w *world) {
	x.live, x.last = true, *j
	x.last.state = w.stateOf(j)
	x.history.ID, x.history.Queue, x.history.Type = j.id, j.queue, j.typ
}

// add adds an event to the history.
func (x *subject) add(at record.Position, what string, why ...string) {
	x.history.Events = append(x.history.Events, Event{
		At: at.At, Commit: at.Number, What: what, Why: slices.DeleteFunc(why, func(s string) bool { return s == "" }),
	})
}

// report adds the meaning of a change to the history of its subject. after is nil if the job is gone.
func (t *explainer) report(x *subject, e *record.Entry, ch *record.Change, before, after *job) {
	w := t.world
	if x.live {
		before.state = x.last.state // before this entry
	}
	defer func() {
		if after == nil {
			return
		}
		if x.note(after, w); x.last.state == core.Ready && before.state != core.Ready {
			x.since = e.At
		}
	}()
	if after == nil {
		x.live = false
		switch before.state {
		case core.Ready:
			x.add(e.Position, "ended: it ran under a lease that its connection guards, or was removed",
				append(t.waited(x), t.others(x)...)...)
		case core.Leased:
			x.add(e.Position, "ended: worker "+quoted(before.worker)+" finished it, or it was removed")
		case core.Gone, core.Scheduled, core.Blocked, core.Retrying, core.Done, core.Dead:
			x.add(e.Position, "was removed while it was "+before.state.String())
		}
		return
	}
	state := w.stateOf(after)
	switch {
	case before.seq == 0:
		x.add(e.Position, "submitted to queue "+after.queue+": "+t.stateText(after), t.queueOf(after)...)
	case before.queue != after.queue:
		x.add(e.Position, "moved to queue "+after.queue+": "+t.stateText(after), t.queueOf(after)...)
	case state == core.Leased && (before.state != core.Leased || before.attempts != after.attempts):
		x.add(e.Position, "leased by worker "+quoted(after.worker), append(t.waited(x), t.others(x)...)...)
		x.overtakers = overtakers{}
		clear(x.counted)
	case state != before.state, ch.Failure != nil:
		t.moved(x, e, ch, after, state)
	case before.priority != after.priority:
		x.add(e.Position, fmt.Sprintf("priority changed from %d to %d", before.priority, after.priority),
			t.queueOf(after)...)
	}
}

// moved adds a change of state to the history.
func (t *explainer) moved(x *subject, e *record.Entry, ch *record.Change, after *job, state core.State) {
	var why []string
	if ch.Failure != nil {
		why = append(why, "failure: "+cut(ch.Failure.Message))
	}
	if state == core.Ready {
		why = append(why, t.queueOf(after)...)
	}
	x.add(e.Position, "became "+t.stateText(after), why...)
}

// stateText describes the state of a job in words.
func (t *explainer) stateText(j *job) string {
	switch state := t.world.stateOf(j); state {
	case core.Scheduled:
		return "scheduled for " + moment(j.readyAt)
	case core.Blocked:
		var open []string
		for _, seq := range j.waiting {
			if o := t.world.jobs[seq]; o != nil && o.state != core.Done && len(open) < maxNames {
				open = append(open, o.id+" ("+o.state.String()+")")
			}
		}
		return "blocked by " + strings.Join(open, ", ")
	case core.Retrying:
		return fmt.Sprintf("retrying after %d failures, due at %s", j.fails, moment(j.readyAt))
	case core.Leased:
		return "leased by worker " + quoted(j.worker)
	case core.Gone, core.Ready, core.Done, core.Dead:
		return state.String()
	}
	return ""
}

// queueOf describes the queue at the time when a job becomes ready in it.
func (t *explainer) queueOf(j *job) []string {
	if t.world.stateOf(j) != core.Ready {
		return nil
	}
	c := t.world.around(j)
	why := []string{fmt.Sprintf("ahead of it were %d jobs with a higher priority and %d that were ready before; %d behind it, %d leased",
		c.higher, c.earlier, c.behind, c.leased)}
	if t.world.paused(j.queue) {
		why = append(why, "queue "+j.queue+" is paused")
	}
	return append(why, t.world.limitsOf(j)...)
}

// waited says how long a job was ready, and which jobs ran in that time.
func (t *explainer) waited(x *subject) (why []string) {
	if x.since != 0 && t.world.now >= x.since {
		why = append(why, "it was ready for "+t.world.now.Sub(x.since).Round(time.Millisecond).String())
	}
	if p := &x.overtakers; len(p.names) > 0 {
		text := fmt.Sprintf("meanwhile others of the queue ran: %d with a higher priority, %d that were ready before it, %d behind it",
			p.higher, p.earlier, p.later)
		why = append(why, text+" ("+strings.Join(p.names, ", ")+more(p.higher+p.earlier+p.later-len(p.names))+")")
		if p.later > 0 {
			why = append(why, "those behind it passed it because "+p.why.text())
		}
	}
	return append(why, t.world.limitsOf(&x.last)...)
}

// others explains why a job ran before the other subjects.
func (t *explainer) others(x *subject) (why []string) {
	ran := &x.last
	if now := t.world.jobs[x.seq]; now != nil {
		ran = now // with its worker
	}
	for _, o := range t.subjects {
		if o == x {
			continue
		}
		j := t.world.jobs[o.seq]
		switch {
		case j == nil && o.live, j == nil && len(o.history.Events) > 0:
			why = append(why, "job "+o.history.Asked+" had ended already")
		case j == nil:
			why = append(why, "job "+o.history.Asked+" was not submitted yet")
		case t.world.stateOf(j) != core.Ready:
			why = append(why, "job "+o.history.Asked+" was "+t.stateText(j))
		case j.queue != x.last.queue:
			why = append(why, "job "+o.history.Asked+" was ready in another queue, "+j.queue+": the worker did not ask for that one, or named it later")
		case j.priority < x.last.priority:
			why = append(why, fmt.Sprintf("job %s was ready too, with a lower priority (%d, not %d)", o.history.Asked,
				j.priority, x.last.priority))
		case ahead(&x.last, j):
			why = append(why, "job "+o.history.Asked+" was ready too, but since "+moment(j.readyAt)+" only")
		default:
			why = append(why, "job "+o.history.Asked+" was ahead of it: "+t.world.passedBecause(j, ran))
		}
	}
	return why
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

func moment(at core.Instant) string { return at.Time().Format("2006-01-02T15:04:05.000Z") }

// maxText limits the length of clients' texts in an explanation.
const maxText = 200

func cut(s string) string {
	if len(s) > maxText {
		s = s[:maxText] + "…"
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

func quoted(worker string) string {
	if worker == "" {
		return "(unnamed)"
	}
	return strconv.Quote(cut(worker))
}
