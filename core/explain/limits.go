package explain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"broker/core"
	"broker/core/internal/limit"
)

// limitsOf describes the limits that apply to a job, and the order of its queue.
func (w *world) limitsOf(x *job) (why []string) {
	if l := w.limits(x.queue); len(l) > 0 {
		why = append(why, "limits of the queue: "+strings.Join(l, "; "))
	}
	if l := w.settings[x.queue]; len(l) > 0 {
		why = append(why, "limits of the queue in the present settings: "+strings.Join(l, "; "))
	}
	return append(why, w.sharedLimits(x)...)
}

// setSettings describes the limits and orders that a settings file sets. They are not in the archive.
func (w *world) setSettings(limits []core.QueueLimit, sharings []core.Sharing) {
	w.settings, w.settingLimits = make(map[string][]string), make(map[string][]core.QueueLimit)
	w.settingSharings = make(map[string]core.Sharing)
	for i := range limits {
		l := &limits[i]
		w.settingLimits[l.Queue] = append(w.settingLimits[l.Queue], *l)
		if text := limitText(l); text != "" {
			w.settings[l.Queue] = append(w.settings[l.Queue], text)
		}
	}
	for i := range sharings {
		s := &sharings[i]
		w.settingSharings[s.Queue] = *s
		w.settings[s.Queue] = append(w.settings[s.Queue], orderTexts(s.Fair, s.Ordered)...)
	}
	for _, texts := range w.settings {
		slices.Sort(texts)
	}
}

// limits describes the limits and the order of a queue that operations have set.
func (w *world) limits(queue string) (all []string) {
	var k struct {
		Limits []struct {
			Scope     core.LimitScope `json:"scope"`
			Name      []byte          `json:"name"`
			Leased    uint32          `json:"leased"`
			PerWorker uint32          `json:"per_worker"`
			Rate      float64         `json:"rate"`
		} `json:"limits"`
		Fair    bool `json:"fair"`
		Ordered bool `json:"ordered"`
	}
	if json.Unmarshal(w.meta[limit.RulesPrefix+queue], &k) != nil {
		return nil // nothing is set
	}
	for _, l := range k.Limits {
		text := limitText(&core.QueueLimit{
			Scope: l.Scope, Name: string(l.Name),
			Throttle: core.Throttle{Leased: l.Leased, LeasedPerWorker: l.PerWorker, Rate: l.Rate},
		})
		if text != "" {
			all = append(all, text)
		}
	}
	return append(all, orderTexts(k.Fair, k.Ordered)...)
}

// limitText describes a limit; empty: it limits nothing.
func limitText(l *core.QueueLimit) string {
	var parts []string
	if l.Leased > 0 {
		parts = append(parts, fmt.Sprintf("at most %d leased", l.Leased))
	}
	if l.LeasedPerWorker > 0 {
		parts = append(parts, fmt.Sprintf("at most %d for a worker", l.LeasedPerWorker))
	}
	if l.Rate > 0 {
		parts = append(parts, fmt.Sprintf("%g leases a second", l.Rate))
	}
	text := strings.Join(parts, ", ")
	switch {
	case text == "":
	case l.Scope == core.ScopeType && l.Name != "":
		text += fmt.Sprintf(" (type %s)", l.Name)
	case l.Scope == core.ScopeType:
		text += " (of each type)"
	case l.Scope == core.ScopeKey && l.Name != "":
		text += fmt.Sprintf(" (key %s)", l.Name)
	case l.Scope == core.ScopeKey:
		text += " (of each key)"
	}
	return text
}

// orderTexts describes the order of a queue with keys.
func orderTexts(fair, ordered bool) (texts []string) {
	if fair {
		texts = append(texts, "keys take fair turns, whatever the order of their jobs")
	}
	if ordered {
		texts = append(texts, "jobs of a key run one after the other")
	}
	return texts
}
