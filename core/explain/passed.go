package explain

import (
	"fmt"
	"slices"
	"strings"

	"broker/core"
	"broker/core/internal/limit"
)

// rulesOf returns the limits and the sharing of a queue: those that operations have set, and those of the present
// settings.
func (w *world) rulesOf(queue string) rules {
	set, present := w.storedRules(queue), w.settings[queue]
	if set.sharing.Key.Kind == core.KeyNone && present.sharing.Queue != "" {
		set.sharing = present.sharing
	}
	set.limits = append(set.limits, present.limits...)
	return set
}

// keyOf is the key of a job.
func (p *rules) keyOf(x *job) string { return limit.KeyOf(p.sharing.Key, x.tags, x.unique) }

// passedBecause says why a ready job was passed by the job o, which is behind it in their queue: by the order of its
// key, a limit whose places are taken, a fair turn, or a rate. If there is none of them, the worker has named the job
// that it takes.
func (w *world) passedBecause(x, o *job) string {
	p := w.rulesOf(x.queue)
	key := p.keyOf(x)
	if p.sharing.Ordered {
		if first := w.firstOf(x, &p, key); first != nil {
			return fmt.Sprintf("the queue runs the jobs of the key %s in order, and job %s comes first", key, first.id)
		}
	}
	for _, l := range w.shared {
		if l.Leased == 0 || !l.has(x) {
			continue
		}
		if taken := w.taken(l, o); taken+uint64(max(1, x.cost)) > uint64(l.Leased) {
			return fmt.Sprintf("the shared limit %s, %s, was reached: %d were taken", cut(l.Name), limitText(&l.Limit),
				taken)
		}
	}
	for i := range p.limits {
		l := &p.limits[i]
		if !p.applies(l, x, key) {
			continue
		}
		all, byWorker := w.takenOf(&p, l, x, o)
		cost := uint64(max(1, x.cost))
		switch {
		case l.Leased > 0 && all+cost > uint64(l.Leased):
			return fmt.Sprintf("the limit %s was reached: %d were taken", limitText(l), all)
		case l.LeasedPerWorker > 0 && byWorker+cost > uint64(l.LeasedPerWorker):
			return fmt.Sprintf("the limit %s was reached: the worker %s had %d", limitText(l), quoted(o.worker), byWorker)
		}
	}
	if other := p.keyOf(o); p.sharing.Fair && other != key {
		return fmt.Sprintf("keys take turns: it was the turn of %s, and not of %s", keyName(other), keyName(key))
	}
	for i := range p.limits {
		if l := &p.limits[i]; l.Rate > 0 && p.applies(l, x, key) {
			return "the rate of the limit " + limitText(l) + " may have kept it back"
		}
	}
	for _, l := range w.shared {
		if l.Rate > 0 && l.has(x) {
			return fmt.Sprintf("the rate of the shared limit %s may have kept it back", cut(l.Name))
		}
	}
	return "no limit and no turn kept it back: the worker chose the other job by its id"
}

func keyName(key string) string {
	if key == "" {
		return "the jobs without a key"
	}
	return "the key " + cut(key)
}

// applies reports whether a limit is for a job with a key. A limit for each type or key does not apply if the type or
// key has a limit of its own.
func (p *rules) applies(l *core.Limit, x *job, key string) bool {
	name := ""
	switch l.Scope {
	case core.ScopeQueue:
		return true
	case core.ScopeType:
		name = x.typ
	case core.ScopeKey:
		name = key
	}
	if l.Of != "" {
		return l.Of == name
	}
	for i := range p.limits {
		if o := &p.limits[i]; o.Scope == l.Scope && o.Of == name && name != "" {
			return false
		}
	}
	return true
}

// takenOf returns the cost of the leased jobs that a limit counts together with x, except the job but, and of those
// that the worker of but has.
func (w *world) takenOf(p *rules, l *core.Limit, x, but *job) (all, byWorker uint64) {
	w.looked += len(w.leased)
	for _, o := range w.leased {
		same := l.Scope == core.ScopeQueue || l.Scope == core.ScopeType && o.typ == x.typ ||
			l.Scope == core.ScopeKey && p.keyOf(o) == p.keyOf(x)
		if o.queue == x.queue && o.seq != but.seq && same {
			all += uint64(max(1, o.cost))
			if o.worker == but.worker {
				byWorker += uint64(max(1, o.cost))
			}
		}
	}
	return all, byWorker
}

// firstOf returns the earliest job of a key that has not ended, if it is not x; nil: there is none.
func (w *world) firstOf(x *job, p *rules, key string) (first *job) {
	if key == "" {
		return nil
	}
	w.looked += len(w.jobs)
	for _, o := range w.jobs {
		if o.queue == x.queue && o.seq < x.seq && w.stateOf(o).Unfinished() && p.keyOf(o) == key &&
			(first == nil || o.seq < first.seq) {
			first = o
		}
	}
	return first
}

// reasons lists different texts in the order of their first use.
type reasons []string

func (r *reasons) add(text string) {
	if !slices.Contains(*r, text) {
		*r = append(*r, text)
	}
}

func (r reasons) text() string { return strings.Join(r, "; ") }
