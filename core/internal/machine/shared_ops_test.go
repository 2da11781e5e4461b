package machine_test

import (
	"fmt"
	"strings"

	"broker/core"
)

// sharedOp reads put-shared NAME queues=a,b types=T leased=3.
func (r *reader) sharedOp(verb string, tag uint64) core.Op {
	switch verb {
	case "remove-shared":
		return &core.RemoveSharedLimit{Tag: tag, Name: r.Word(2)}
	case "list-shared":
		return &core.ListSharedLimits{Tag: tag, Name: r.Option("name")}
	}
	return &core.PutSharedLimit{Tag: tag, Limit: core.SharedLimit{
		Name: r.Word(2), Queues: r.words("queues"), Types: r.words("types"), Throttle: r.throttle(),
	}}
}

// sharedLimits prints shared limits.
func (p *player) sharedLimits(all []core.SharedLimitInfo) string {
	if len(all) == 0 {
		return "none"
	}
	var lines []string
	for _, l := range all {
		text := fmt.Sprintf("%s queues=%v types=%v leased=%d rate=%v burst=%d taken=%d ready=%d", l.Name, l.Queues,
			l.Types, l.Leased, l.Rate, l.Burst, l.Use.Taken, l.Use.Ready)
		if l.Use.NextAt != 0 {
			text += " next=" + p.at(l.Use.NextAt)
		}
		for _, s := range l.Use.Slots {
			text += fmt.Sprintf(" %d:%q/%v", s.Seq, s.Worker, s.Client != 0)
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}

// shared returns a random operation on shared limits.
func (l *history) shared() core.Op {
	name := []string{"s1", "s2"}[l.rng.IntN(2)]
	if l.maybe(4) {
		return &core.RemoveSharedLimit{Name: name}
	}
	s := core.SharedLimit{Name: name, Throttle: core.Throttle{Leased: uint32(l.rng.IntN(5))}}
	if l.maybe(2) {
		s.Queues = []string{l.queue(), l.queue()}
	}
	if l.maybe(2) {
		s.Types = []string{[]string{"another", "q1", l.queue()}[l.rng.IntN(3)]}
	}
	if l.maybe(3) {
		s.Rate, s.Burst = float64(1+l.rng.IntN(3)), uint32(l.rng.IntN(4))
	}
	return &core.PutSharedLimit{Limit: s}
}
