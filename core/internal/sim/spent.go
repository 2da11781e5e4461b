package sim

import (
	"fmt"
	"slices"

	"broker/core"
)

// Rules that move jobs which were leased often. The model has the rules that were set. It computes which lease of a job
// must not happen, and from where a job can have come.

// spentRule is a rule as clients have set it.
type spentRule struct {
	rule core.SpentRule
	made core.Commit
	from core.Instant // of the monotonic clock: when it was set; zero: before the last start
}

// spentRules are the rules of all queues.
type spentRules struct {
	rules  map[string][]spentRule // by queue, the last one is in force
	least  map[string]uint32      // fewest leases of all rules that a queue has had
	target map[string]bool        // queues to which jobs may have moved
	hidden map[string]bool        // unknown queues, which may have any rule
}

func newSpentRules() spentRules {
	return spentRules{
		rules: map[string][]spentRule{}, least: map[string]uint32{}, target: map[string]bool{},
		hidden: map[string]bool{},
	}
}

// moveSpent sets or removes a rule.
func (w *world) moveSpent() error {
	tag, s := w.newTag(), &w.model.spent
	op := &core.MoveSpent{Tag: tag, Queue: queueName(w.rng.IntN(2))}
	if w.rng.IntN(3) > 0 {
		op.Rule = core.SpentRule{
			Leases: uint32(1 + w.rng.IntN(3)), To: []string{"dlq", queueName(2), queueName(0)}[w.rng.IntN(3)],
		}
	}
	valid := op.Rule.To != op.Queue
	if valid && op.Rule.Leases > 0 { // before the operation, because it may serve clients
		if least := s.least[op.Queue]; least == 0 || op.Rule.Leases < least {
			s.least[op.Queue] = op.Rule.Leases
		}
		s.target[op.Rule.To] = true
	}
	w.note("%+v", op)
	return w.do(w.anyClient(), op, tag, func(r core.Reply) {
		if r.Kind == core.Accepted {
			s.rules[op.Queue] = append(s.rules[op.Queue],
				spentRule{op.Rule, w.commitOf(r, true), w.clk.monotonic.Now()})
		}
	})
}

// checkSpent checks that the rule of its queue allows a lease that a job got at since or later.
func (w *world) checkSpent(i *core.JobInfo, since core.Instant) error {
	past := w.model.spent.rules[i.Queue]
	if len(past) == 0 || i.Ephemeral || i.Job == nil || i.Job.MaxAttempts != 0 || i.Job.LeaseEnd == core.LeaseEndFail {
		return nil
	}
	last := past[len(past)-1]
	if most := last.rule.Leases; most > 0 && i.Attempts-i.MovedAfter > most && last.from < since {
		return fmt.Errorf("job %d of queue %s has lease %d, it had %d before it came there, and the queue allows %d",
			i.Seq, i.Queue, i.Attempts, i.MovedAfter, most)
	}
	return nil
}

// checkOrigin checks the queue from which a job has moved.
func (s *spentRules) checkOrigin(i *core.JobInfo) error {
	if least := s.least[i.MovedFrom]; i.MovedFrom != "" && (least == 0 || i.MovedAfter < least) ||
		i.MovedAfter > i.Attempts {
		return fmt.Errorf("job %d has %d leases, and has moved from %q after %d", i.Seq, i.Attempts, i.MovedFrom,
			i.MovedAfter)
	}
	return nil
}

// spentAfterCrash checks that each rule is possible after the crash, and updates the model to it. The rules of unknown
// queues cannot be read.
func (w *world) spentAfterCrash(committed core.Commit) error {
	for queue, past := range w.model.spent.rules {
		r := w.ask(&core.InspectQueue{Queue: queue})
		if len(r.Queues) == 0 {
			delete(w.model.spent.rules, queue)
			w.model.spent.hidden[queue] = true
			continue
		}
		have := core.SpentRule{}
		if is := r.Queues[0].Spent; is != nil {
			have = *is
		}
		first := 0 // the newest that was durable
		for k := range past {
			if past[k].made <= committed {
				first = k
			}
		}
		possible := slices.ContainsFunc(past[first:], func(s spentRule) bool { return s.rule == have })
		if !possible && (past[0].made <= committed || have != core.SpentRule{} && !w.model.spent.hidden[queue]) {
			return fmt.Errorf("the rule of queue %s was %+v, commit %d, and is %+v", queue, past, committed, have)
		}
		w.model.spent.rules[queue] = []spentRule{{rule: have, made: 1}}
		delete(w.model.spent.hidden, queue)
	}
	return nil
}
