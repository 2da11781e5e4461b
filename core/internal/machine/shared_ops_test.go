package machine_test

import (
	"fmt"

	"broker/core"
)

// sharedOp reads put-shared NAME queues=a,b types=T leased=3.
func (r *reader) sharedOp(verb string, tag uint64) core.Op {
	switch verb {
	case "remove-shared":
		return &core.RemoveLimit{Tag: tag, ID: core.LimitID{Name: r.Word(2)}}
	case "list-shared":
		return &core.ListLimits{Tag: tag, Name: r.Option("name")}
	}
	return &core.PutLimit{Tag: tag, Limit: core.Limit{
		Name: r.Word(2), Selector: core.Selector{Queues: r.words("queues"), Types: r.words("types")},
		Throttle: r.throttle(),
	}}
}

// sharedLimit prints a shared limit.
func (p *player) sharedLimit(l *core.LimitInfo) string {
	use := &l.Uses[0]
	text := fmt.Sprintf("%s queues=%v types=%v leased=%d rate=%v burst=%d taken=%d ready=%d", l.Name, l.Queues,
		l.Types, l.Leased, l.Rate, l.Burst, use.Taken, use.Ready)
	if use.NextAt != 0 {
		text += " next=" + p.at(use.NextAt)
	}
	for _, s := range use.Slots {
		text += fmt.Sprintf(" %d:%q/%v", s.Seq, s.Worker, s.Client != 0)
	}
	return text
}

// shared returns a random operation on shared limits.
func (l *history) shared() core.Op {
	name := []string{"s1", "s2"}[l.rng.IntN(2)]
	if l.maybe(4) {
		return &core.RemoveLimit{ID: core.LimitID{Name: name}}
	}
	s := core.Limit{Name: name, Throttle: core.Throttle{Leased: uint32(l.rng.IntN(5))}}
	if l.maybe(2) {
		s.Queues = []string{l.queue(), l.queue()}
	}
	if l.maybe(2) {
		s.Types = []string{[]string{"another", "q1", l.queue()}[l.rng.IntN(3)]}
	}
	if l.maybe(3) {
		s.Rate, s.Burst = float64(1+l.rng.IntN(3)), uint32(l.rng.IntN(4))
	}
	return &core.PutLimit{Limit: s}
}
