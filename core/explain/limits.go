package explain

import (
	"fmt"
	"slices"
	"strings"

	"broker/core"
	"broker/core/internal/limit"
	"broker/core/schema"
)

// rules are what decides about the order of a queue's jobs, besides priority and age.
type rules struct {
	limits  []core.Limit
	sharing core.Sharing
}

// limitsOf describes the limits that apply to a job, and the order of its queue.
func (w *world) limitsOf(x *job) (why []string) {
	set := w.storedRules(x.queue)
	if l := set.texts(); len(l) > 0 {
		why = append(why, "limits of the queue: "+strings.Join(l, "; "))
	}
	present := w.settings[x.queue]
	if l := present.texts(); len(l) > 0 {
		slices.Sort(l)
		why = append(why, "limits of the queue in the present settings: "+strings.Join(l, "; "))
	}
	return append(why, w.sharedLimits(x)...)
}

// setSettings takes the limits and orders that a settings file sets. They are not in the archive.
func (w *world) setSettings(limits []core.Limit, sharings []core.Sharing) {
	w.settings = make(map[string]rules)
	for i := range limits {
		queue := limits[i].Queues[0]
		p := w.settings[queue]
		p.limits = append(p.limits, limits[i])
		w.settings[queue] = p
	}
	for _, s := range sharings {
		p := w.settings[s.Queue]
		p.sharing = s
		w.settings[s.Queue] = p
	}
}

// storedRules returns the limits and the sharing of a queue that operations have set.
func (w *world) storedRules(queue string) rules {
	k, err := limit.Decode(limit.RulesPrefix+queue, w.meta[limit.RulesPrefix+queue])
	if err != nil {
		return rules{} // nothing is set
	}
	return rules{limits: k.Limits, sharing: k.Sharing}
}

// texts describes limits and the order.
func (p *rules) texts() (all []string) {
	for i := range p.limits {
		if text := limitText(&p.limits[i]); text != "" {
			all = append(all, text)
		}
	}
	return append(all, orderTexts(p.sharing.Fair, p.sharing.Ordered)...)
}

// limitText describes a limit; empty: it limits nothing.
func limitText(l *core.Limit) string {
	throttle := schema.ThrottleOf(&l.Throttle)
	text := throttle.String()
	switch {
	case text == "":
	case l.Scope == core.ScopeType && l.Of != "":
		text += fmt.Sprintf(" (type %s)", l.Of)
	case l.Scope == core.ScopeType:
		text += " (of each type)"
	case l.Scope == core.ScopeKey && l.Of != "":
		text += fmt.Sprintf(" (key %s)", l.Of)
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
