package limit

import (
	"cmp"
	"maps"
	"slices"

	"broker/core"
	"broker/core/internal/table"
)

// List lists limits and sharings, for a single queue with their current use.
func (r *Rules) List(op *core.ListLimits) ([]core.LimitInfo, []core.Sharing) {
	answer := &core.Answer{Limits: []core.LimitInfo{}, Sharings: []core.Sharing{}}
	if op.Queue != "" {
		if n := r.table.QueueNumber(op.Queue); n != 0 {
			r.addLimits(answer, n, true)
		}
		return answer.Limits, answer.Sharings
	}
	queues := 0
	for _, n := range r.table.SortedQueues() {
		if q := r.queues[n]; q.Name > op.After && q.rules != nil {
			if queues++; op.Limit > 0 && queues > op.Limit {
				break
			}
			r.addLimits(answer, n, false)
		}
	}
	return answer.Limits, answer.Sharings
}

// addLimits adds the limits and the sharing of a queue to an answer.
func (r *Rules) addLimits(to *core.Answer, n uint32, uses bool) {
	q := r.queues[n]
	if q.rules == nil {
		return
	}
	var held slotHolders
	if uses {
		held = r.holdersIn(n)
	}
	for _, l := range q.rules.sorted() {
		row := core.LimitInfo{QueueLimit: l}
		if uses {
			row.Uses = r.usesOf(q, limitName{l.Scope, l.Name}, &held)
		}
		to.Limits = append(to.Limits, row)
	}
	if s := q.rules.sharing; s.Key.Kind != core.KeyNone {
		s.Weights = maps.Clone(s.Weights)
		to.Sharings = append(to.Sharings, s)
	}
}

// usesOf returns the current use of a limit: the most used types or keys, by name.
func (r *Rules) usesOf(q *Queue, name limitName, held *slotHolders) []core.LimitUse {
	if name.scope == core.ScopeQueue {
		use := core.LimitUse{Taken: q.slots, Ready: q.Ready.Len(), Slots: held.whole}
		if q.lanes != nil && q.lanes.whole != nil {
			use.NextAt = r.nextAt(q.lanes.whole)
		}
		return []core.LimitUse{use}
	}
	uses := []core.LimitUse{}
	if q.lanes == nil {
		return uses
	}
	for id, b := range q.lanes.buckets {
		if _, own := q.rules.limits[id]; id.scope != name.scope || own && id.name != name.name ||
			!own && name.name != "" {
			continue
		}
		use := core.LimitUse{Name: id.name, Taken: b.slots, NextAt: r.nextAt(b), Ready: b.ready}
		use.Slots = held.byBucket[b]
		uses = append(uses, use)
	}
	if len(uses) > core.MaxLimitUses {
		slices.SortFunc(uses, func(a, b core.LimitUse) int {
			return cmp.Or(cmp.Compare(b.Taken, a.Taken), cmp.Compare(b.Ready, a.Ready), cmp.Compare(a.Name, b.Name))
		})
		uses = slices.Clip(uses[:core.MaxLimitUses])
	}
	slices.SortFunc(uses, func(a, b core.LimitUse) int { return cmp.Compare(a.Name, b.Name) })
	return uses
}

// nextAt returns when the rate of a bucket allows the next lease; zero: now.
func (r *Rules) nextAt(b *bucket) core.Instant {
	if at := r.roomAt(b, 1); b.limit.Rate > 0 && at > r.table.Now {
		return at
	}
	return 0
}

// slotHolders are the leased jobs of a queue that count against its limits, the oldest lease first.
type slotHolders struct {
	whole    []core.SlotUse
	byBucket map[*bucket][]core.SlotUse
}

// maxHolderLooks is how many leased jobs a list of the holders of slots examines, the oldest lease first.
const maxHolderLooks = 20_000

// holdersIn goes through the leased jobs only once, regardless of the number of limits, types and keys.
func (r *Rules) holdersIn(n uint32) slotHolders {
	held := slotHolders{byBucket: map[*bucket][]core.SlotUse{}}
	walk := r.table.ByState[core.Leased].From(nil)
	for h, looks := walk.Next(), 0; h != 0 && looks < maxHolderLooks; h = walk.Next() {
		looks++
		e := r.table.At(h)
		x := r.limitsOf(h)
		if e.Queue != n || x == nil {
			continue
		}
		if x.slot == slotTaken && len(held.whole) < core.MaxSlotUses {
			held.whole = append(held.whole, r.slotUse(e))
		}
		if x.lane == nil {
			continue
		}
		for _, slot := range x.lane.slots {
			if b := slot.bucket; b != nil && len(held.byBucket[b]) < core.MaxSlotUses {
				held.byBucket[b] = append(held.byBucket[b], r.slotUse(e))
			}
		}
	}
	return held
}

func (r *Rules) slotUse(e *table.Entry) core.SlotUse {
	s := core.SlotUse{Seq: e.Seq, LeasedAt: e.LeasedAt, Worker: r.host.HolderName(e)}
	if e.HolderKind == core.HeldByConn {
		s.Client = r.host.Client(e.Holder)
	}
	return s
}
