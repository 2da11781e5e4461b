package machine_test

import (
	"fmt"
	"strconv"
	"strings"

	"broker/core"
)

var scopes = map[string]core.LimitScope{"": core.ScopeQueue, "type": core.ScopeType, "key": core.ScopeKey}

func (r *reader) throttle() core.Throttle {
	t := core.Throttle{
		Leased: r.count("leased"), LeasedPerWorker: r.count("per-worker"), SlotFor: r.span("slot-for"),
		Burst: r.count("burst"),
	}
	if text := r.Option("rate"); text != "" {
		t.Rate, _ = strconv.ParseFloat(text, 64)
	}
	return t
}

func (r *reader) limitOp(verb string, tag uint64) core.Op {
	queue := r.Option("queue")
	if verb != "list-limits" {
		queue = r.Word(2)
	}
	switch verb {
	case "put-limit":
		return &core.PutLimit{Tag: tag, Limit: core.Limit{
			Selector: core.InQueue(queue, scopes[r.Option("scope")], r.Option("name")), Throttle: r.throttle(),
			FromConfig: r.flag("from-config"),
		}}
	case "remove-limit":
		return &core.RemoveLimit{
			Tag: tag, ID: core.LimitID{Queue: queue, Scope: scopes[r.Option("scope")], Of: r.Option("name")},
			FromConfig: r.flag("from-config"),
		}
	case "list-limits":
		return &core.ListLimits{
			Tag: tag, Queue: queue, After: core.LimitID{Queue: r.Option("after")}, Limit: int(r.number("limit")),
		}
	}
	s := core.Sharing{Queue: queue, Fair: r.flag("fair"), Ordered: r.flag("ordered"), FromConfig: r.flag("from-config")}
	switch key := r.Option("key"); key {
	case "":
	case "unique":
		s.Key.Kind = core.KeyUnique
	default:
		s.Key = core.JobKey{Kind: core.KeyTag, Tag: key}
	}
	if weights := r.Option("weights"); weights != "" {
		s.Weights = map[string]uint32{}
		for one := range strings.SplitSeq(weights, ",") {
			name, weight, _ := strings.Cut(one, "=")
			n, _ := strconv.ParseUint(weight, 10, 32)
			s.Weights[name] = uint32(n)
		}
	}
	return &core.ShareQueue{Tag: tag, Sharing: s}
}

// limits prints limits and sharings.
func (p *player) limits(a *core.Answer) string {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	mark := func(text string, is bool) string {
		if is {
			return " " + text
		}
		return ""
	}
	for _, l := range a.Limits {
		if l.IsShared() {
			say("%s", p.sharedLimit(&l))
			continue
		}
		say("%s scope=%d name=%q leased=%d per-worker=%d slot-for=%v rate=%v burst=%d%s", l.Queues[0], l.Scope, l.Of,
			l.Leased, l.LeasedPerWorker, l.SlotFor, l.Rate, l.Burst, mark("configured", l.FromConfig))
		for _, u := range l.Uses {
			text := fmt.Sprintf("  %q taken=%d ready=%d", u.Name, u.Taken, u.Ready)
			if u.NextAt != 0 {
				text += " next=" + p.at(u.NextAt)
			}
			for _, s := range u.Slots {
				text += fmt.Sprintf(" %d:%q/%v", s.Seq, s.Worker, s.Client != 0)
			}
			say("%s", text)
		}
	}
	for _, s := range a.Sharings {
		say("%s key=%d %s fair=%v weights=%v%s%s", s.Queue, s.Key.Kind, s.Key.Tag, s.Fair, s.Weights,
			mark("ordered", s.Ordered), mark("configured", s.FromConfig))
	}
	if lines == nil {
		return "none"
	}
	return strings.Join(lines, "\n")
}
