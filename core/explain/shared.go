package explain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"broker/core"
	"broker/core/internal/limit"
)

// shared is a limit of several queues and types together.
type shared struct {
	name   string
	queues map[string]bool
	types  map[string]bool
	leased uint32
	rate   float64
}

// setShared applies the metadata of a shared limit.
func (w *world) setShared(m core.MetaEntry) {
	name := strings.Clone(strings.TrimPrefix(m.Name, limit.SharedPrefix))
	delete(w.shared, name)
	var k struct {
		Queues [][]byte `json:"queues"`
		Types  [][]byte `json:"types"`
		Leased uint32   `json:"leased"`
		Rate   float64  `json:"rate"`
	}
	if m.Value == nil || json.Unmarshal(m.Value, &k) != nil {
		return
	}
	l := &shared{name: name, queues: map[string]bool{}, types: map[string]bool{}, leased: k.Leased, rate: k.Rate}
	for _, queue := range k.Queues {
		l.queues[string(queue)] = true
	}
	for _, typ := range k.Types {
		l.types[string(typ)] = true
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
		var parts []string
		if l.leased > 0 {
			parts = append(parts, fmt.Sprintf("at most %d leased, %d taken by others", l.leased, w.taken(l, x)))
		}
		if l.rate > 0 {
			parts = append(parts, fmt.Sprintf("%g leases a second", l.rate))
		}
		text := fmt.Sprintf("limit %s across queues: %s", cut(l.name), strings.Join(parts, ", "))
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
	for _, o := range w.jobs {
		if o.seq != but.seq && o.state == core.Leased && l.has(o) {
			cost += uint64(max(1, o.cost))
		}
	}
	return cost
}
