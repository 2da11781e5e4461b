package machine

import (
	"cmp"
	"maps"
	"slices"
	"sort"

	"broker/core"
	"broker/core/internal/table"
)

// listLimits is ListLimits.
func (m *Machine) listLimits(c *client, op *core.ListLimits) {
	answer := &core.Answer{Limits: []core.LimitInfo{}, Sharings: []core.Sharing{}}
	if op.Queue != "" {
		if n := m.table.QueueNumber(op.Queue); n != 0 {
			m.addLimits(answer, n, true)
		}
	} else {
		queues := 0
		for _, n := range m.table.SortedQueues() {
			if q := m.queues[n]; q.Name > op.After && q.policy != nil {
				if queues++; op.Limit > 0 && queues > op.Limit {
					break
				}
				m.addLimits(answer, n, false)
			}
		}
	}
	m.reply(c, core.Reply{Kind: core.Answered, Tag: op.Tag, Commit: m.table.MetaCommit(), Answer: answer})
}

// addLimits adds what limits a queue to an answer.
func (m *Machine) addLimits(to *core.Answer, n uint32, uses bool) {
	q := m.queues[n]
	if q.policy == nil {
		return
	}
	var held slotHolders
	if uses {
		held = m.holdersIn(n)
	}
	for _, l := range q.policy.sorted() {
		row := core.LimitInfo{QueueLimit: l}
		if uses {
			row.Uses = m.usesOf(q, limitName{l.Scope, l.Name}, &held)
		}
		to.Limits = append(to.Limits, row)
	}
	if s := q.policy.sharing; s.Key.Kind != core.KeyNone {
		s.Weights = maps.Clone(s.Weights)
		to.Sharings = append(to.Sharings, s)
	}
}

// usesOf is what counts against a limit: the most used types or keys, by name.
func (m *Machine) usesOf(q *jobQueue, name limitName, held *slotHolders) []core.LimitUse {
	if name.scope == core.ScopeQueue {
		use := core.LimitUse{Taken: q.slots, Ready: q.Ready.Len(), Slots: held.whole}
		if q.lanes != nil && q.lanes.whole != nil {
			use.NextAt = m.nextAt(q.lanes.whole)
		}
		return []core.LimitUse{use}
	}
	uses := []core.LimitUse{}
	if q.lanes == nil {
		return uses
	}
	for id, b := range q.lanes.buckets {
		if _, own := q.policy.limits[id]; id.scope != name.scope || own && id.name != name.name || !own && name.name != "" {
			continue
		}
		use := core.LimitUse{Name: id.name, Taken: b.slots, NextAt: m.nextAt(b)}
		for _, l := range b.lanes {
			use.Ready += l.ready.Len()
		}
		use.Slots = held.byBucket[b]
		uses = append(uses, use)
	}
	if len(uses) > core.MaxLimitUses {
		sort.Slice(uses, func(i, j int) bool {
			a, b := &uses[i], &uses[j]
			return cmp.Or(cmp.Compare(b.Taken, a.Taken), cmp.Compare(b.Ready, a.Ready), cmp.Compare(a.Name, b.Name)) < 0
		})
		uses = slices.Clip(uses[:core.MaxLimitUses])
	}
	sort.Slice(uses, func(i, j int) bool { return uses[i].Name < uses[j].Name })
	return uses
}

// nextAt is when the rate of a bucket lets the next lease go, zero for now.
func (m *Machine) nextAt(b *bucket) core.Instant {
	if at := m.roomAt(b); b.limit.Rate > 0 && at > m.table.Now {
		return at
	}
	return 0
}

// slotHolders are the leased jobs of a queue that count against its limits, the oldest lease first.
type slotHolders struct {
	whole    []core.SlotUse
	byBucket map[*bucket][]core.SlotUse
}

// holdersIn goes once through the leased jobs, however many limits, types and keys the queue has.
func (m *Machine) holdersIn(n uint32) slotHolders {
	held := slotHolders{byBucket: map[*bucket][]core.SlotUse{}}
	walk := m.table.ByState[core.Leased].From(nil)
	for h := walk.Next(); h != 0; h = walk.Next() {
		e := m.table.At(h)
		x := m.limitsOf(h)
		if e.Queue != n || x == nil {
			continue
		}
		if x.slot == slotTaken && len(held.whole) < core.MaxSlotUses {
			held.whole = append(held.whole, m.slotUse(e))
		}
		if x.lane == nil {
			continue
		}
		for _, slot := range x.lane.slots {
			if b := slot.bucket; b != nil && len(held.byBucket[b]) < core.MaxSlotUses {
				held.byBucket[b] = append(held.byBucket[b], m.slotUse(e))
			}
		}
	}
	return held
}

func (m *Machine) slotUse(e *table.Entry) core.SlotUse {
	s := core.SlotUse{Seq: e.Seq, LeasedAt: e.LeasedAt, Worker: m.holderName(e)}
	if e.HolderKind == core.HeldByConn {
		s.Client = m.clients[e.Holder].id
	}
	return s
}
