package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"broker/core"
)

// Limits for several queues and types: for each limit, the model counts the leases that clients have received, with
// their costs, and the used part of the rate. It does not know leases that no client knows of, so it may count too few.

// sharedLimit is a shared limit as clients have set it.
type sharedLimit struct {
	past    []sharedVersion // the newest last
	used    []sharedUse     // use of its rate since the last change
	sealing int             // how many of them are in the commit in progress
	durable int             // how many of them are on disk
}

// sharedVersion is a limit from a commit on; without a name, it was removed.
type sharedVersion struct {
	limit core.Limit
	made  core.Commit
}

// sharedUse is a lease under a limit.
type sharedUse struct {
	at    core.Instant  // of the monotonic clock
	ahead time.Duration // of the wall clock then
	cost  uint32
}

func (s *sharedLimit) now() *core.Limit { return &s.past[len(s.past)-1].limit }

// covers reports whether a limit applies to the jobs of a queue. In the simulation, types have the names of their
// queues.
func covers(l *core.Limit, queue string) bool {
	return slices.Contains(l.Queues, queue) || slices.Contains(l.Types, queue)
}

// isShared reports whether a shared limit applies to the jobs of a queue.
func (m *model) isShared(queue string) bool {
	for _, s := range m.shared {
		if covers(s.now(), queue) {
			return true
		}
	}
	return false
}

// shareLimit sets or removes a shared limit.
func (w *world) shareLimit() error {
	c, tag, name := w.anyClient(), w.newTag(), []string{"s1", "s2"}[w.rng.IntN(2)]
	var op core.Op = &core.RemoveLimit{Tag: tag, ID: core.LimitID{Name: name}}
	next := core.Limit{}
	if w.rng.IntN(4) > 0 {
		next = core.Limit{
			Name: name, Selector: core.Selector{Queues: []string{queueName(w.rng.IntN(2)), queueName(2)}},
			Throttle: core.Throttle{Leased: uint32(w.rng.IntN(5))},
		}
		if w.rng.IntN(2) == 0 {
			next.Types = []string{queueName(3)}
		}
		if next.Leased == 0 || w.rng.IntN(2) == 0 {
			next.Rate, next.Burst = float64(1+w.rng.IntN(3)), uint32(w.rng.IntN(4))
		}
		op = &core.PutLimit{Tag: tag, Limit: next}
	}
	w.note("%+v", op)
	return w.do(c, op, tag, func(r core.Reply) {
		if r.Kind != core.Accepted {
			return
		}
		s := w.model.shared[name]
		if s == nil {
			s = &sharedLimit{past: []sharedVersion{{made: 1}}}
			w.model.shared[name] = s
		}
		s.past = append(s.past, sharedVersion{next, w.commitOf(r, true)})
		s.used, s.sealing, s.durable = nil, 0, 0
	})
}

// withinShared checks that a lease that begins now is within the limits for the jobs of its queue.
func (w *world) withinShared(p *promise, queue string) error {
	for _, name := range slices.Sorted(maps.Keys(w.model.shared)) {
		s := w.model.shared[name]
		l := s.now()
		if !covers(l, queue) {
			continue
		}
		sum, others, byName := uint32(0), false, false
		for _, seq := range w.model.seqs {
			o := w.model.jobs[seq]
			if !o.leased {
				continue
			}
			if i := w.look(seq); i != nil && i.State == core.Leased && covers(l, i.Queue) {
				sum, others, byName = sum+o.cost, others || o != p, byName || o.byName
			}
		}
		if l.Leased > 0 && sum > l.Leased && others && !byName {
			return fmt.Errorf("job %d was handed out, and the limit %+v has leases of %d", p.seq, *l, sum)
		}
		if err := w.withinRate(s, p); err != nil {
			return err
		}
	}
	return nil
}

// withinRate checks, for every span up to now, that the leases do not exceed the rate and the burst. A job that costs
// more than the burst uses all of it, and the rest delays later leases.
func (w *world) withinRate(s *sharedLimit, p *promise) error {
	l := s.now()
	if l.Rate == 0 {
		return nil
	}
	now := w.clk.monotonic.Now()
	s.used = append(s.used, sharedUse{now, w.clk.ahead, p.cost})
	each := max(core.Instant(float64(time.Second)/l.Rate)/core.Instant(time.Microsecond), 1)
	burst := max(l.Burst, 1)
	sum := core.Instant(0)
	for _, u := range slices.Backward(s.used) {
		if u.ahead != w.clk.ahead {
			break // if the clock was set while the broker was down, the rate may be available again
		}
		sum += core.Instant(u.cost)
		if most := (now-u.at)/each + core.Instant(burst) + core.Instant(max(p.cost, burst)-burst); sum > most {
			return fmt.Errorf("job %d was handed out, and the limit %+v has leases of %d since %d, at most %d, now %d",
				p.seq, *l, sum, u.at, most, now)
		}
	}
	return nil
}

// sharedSealed records which uses of rates are in the commit that begins.
func (m *model) sharedSealed() {
	for _, s := range m.shared {
		s.sealing = len(s.used)
	}
}

// sharedDurable records that this commit is on disk.
func (m *model) sharedDurable() {
	for _, s := range m.shared {
		s.durable = s.sealing
	}
}

// limitsText describes the limits without their use.
func limitsText(all []core.LimitInfo) (text string) {
	for i := range all {
		text += fmt.Sprintf("%+v ", all[i].Limit)
	}
	return text
}

// sharedAfterCrash checks that each limit is possible after the crash, and updates the model to it.
func (w *world) sharedAfterCrash(committed core.Commit) error {
	have := map[string]core.Limit{}
	for _, row := range w.ask(&core.ListLimits{}).Limits {
		if row.IsShared() {
			have[row.Name] = row.Limit
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.model.shared)) {
		s, found := w.model.shared[name], -1
		is := fmt.Sprint(normalized(have[name]))
		for k := len(s.past) - 1; k >= 0 && found < 0; k-- {
			if fmt.Sprint(normalized(s.past[k].limit)) == is {
				found = k
			} else if s.past[k].made <= committed {
				break
			}
		}
		if found < 0 {
			return fmt.Errorf("the shared limit %s was %+v, commit %d, and is %+v", name, s.past, committed, have[name])
		}
		if found != len(s.past)-1 {
			s.durable = 0
		}
		s.used = s.used[:min(s.durable, len(s.used))]
		s.past, s.sealing = []sharedVersion{{s.past[found].limit, 1}}, s.durable
	}
	return nil
}

// inOrder returns a limit with its names sorted and without duplicates.
func normalized(l core.Limit) core.Limit {
	l.Queues = slices.Compact(slices.Sorted(slices.Values(l.Queues)))
	l.Types = slices.Compact(slices.Sorted(slices.Values(l.Types)))
	return l
}
