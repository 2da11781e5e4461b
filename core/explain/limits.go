package explain

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"broker/core"
	"broker/core/internal/limit"
)

// limitsOf describes the limits that apply to a job, and the order of its queue.
func (w *world) limitsOf(x *job) (why []string) {
	if l := w.limits(x.queue); len(l) > 0 {
		why = append(why, "limits of the queue: "+strings.Join(l, "; "))
	}
	return append(why, w.sharedLimits(x)...)
}

// limits describes the limits and the order of a queue that operations have set. Limits from configuration files are not
// stored.
func (w *world) limits(queue string) []string {
	var k struct {
		Limits []struct {
			Scope     core.LimitScope `json:"scope"`
			Name      []byte          `json:"name"`
			Leased    uint32          `json:"leased"`
			PerWorker uint32          `json:"per_worker"`
			SlotFor   time.Duration   `json:"slot_for"`
			Rate      float64         `json:"rate"`
		} `json:"limits"`
		Fair    bool `json:"fair"`
		Ordered bool `json:"ordered"`
	}
	if json.Unmarshal(w.meta[limit.PolicyPrefix+queue], &k) != nil {
		return nil // nothing is set
	}
	var all []string
	for _, l := range k.Limits {
		var parts []string
		if l.Leased > 0 {
			parts = append(parts, fmt.Sprintf("at most %d leased", l.Leased))
		}
		if l.PerWorker > 0 {
			parts = append(parts, fmt.Sprintf("at most %d for a worker", l.PerWorker))
		}
		if l.Rate > 0 {
			parts = append(parts, fmt.Sprintf("%g leases a second", l.Rate))
		}
		text := strings.Join(parts, ", ")
		switch {
		case text == "":
			continue
		case l.Scope == core.ScopeType && len(l.Name) > 0:
			text += fmt.Sprintf(" (type %s)", l.Name)
		case l.Scope == core.ScopeType:
			text += " (of each type)"
		case l.Scope == core.ScopeKey && len(l.Name) > 0:
			text += fmt.Sprintf(" (key %s)", l.Name)
		case l.Scope == core.ScopeKey:
			text += " (of each key)"
		}
		all = append(all, text)
	}
	if k.Fair {
		all = append(all, "keys take fair turns, whatever the order of their jobs")
	}
	if k.Ordered {
		all = append(all, "jobs of a key run one after the other")
	}
	return all
}
