package explain

import (
	"fmt"
	"slices"
	"strings"

	"broker/core"
	"broker/core/internal/limit"
)

// shared is a limit of several queues and types together.
type shared struct {
	core.Limit
	queues map[string]bool
	types  map[string]bool
}

// setShared applies the metadata of a shared limit.
func (w *world) setShared(m core.MetaEntry) {
	name := strings.Clone(strings.TrimPrefix(m.Name, limit.SharedPrefix))
	delete(w.shared, name)
	if m.Value == nil {
		return
	}
	k, err := limit.Decode(limit.SharedPrefix+name, m.Value)
	if err != nil {
		return
	}
	l := &shared{Limit: k.Limits[0], queues: map[string]bool{}, types: map[string]bool{}}
	for _, queue := range l.Queues {
		l.queues[queue] = true
	}
	for _, typ := range l.Types {
		l.types[typ] = true
	}
	w.shared[name] = l
}

func (l *shared) has(x *job) bool { return l.queues[x.queue] || l.types[x.typ] }

// sharedLimits describes the limits across queues that apply to a job, and how much of them other running jobs take.
func (w *world) sharedLimits(x *job) (why []string) {
	for _, l := range w.shared {
		if !l.has(x) {
			continue
		}
		text := fmt.Sprintf("limit %s across queues: %s", cut(l.Name), limitText(&l.Limit))
		if l.Leased > 0 {
			text += fmt.Sprintf("; %d taken by others", w.taken(l, x))
		}
		if x.cost > 1 {
			text += fmt.Sprintf("; the job costs %d", x.cost)
		}
		why = append(why, text)
	}
	slices.Sort(why)
	return why
}

// taken returns the cost of the leased jobs under a limit, except the job but.
func (w *world) taken(l *shared, but *job) (cost uint64) {
	w.looked += len(w.leased)
	for _, o := range w.leased {
		if o.seq != but.seq && l.has(o) {
			cost += uint64(max(1, o.cost))
		}
	}
	return cost
}
