package limit

import (
	"cmp"
	"maps"
	"slices"

	"broker/core"
	"broker/core/internal/table"
)

// List answers ListLimits.
func (r *Rules) List(op *core.ListLimits) *core.Answer {
	answer := &core.Answer{Limits: []core.LimitInfo{}}
	switch {
	case op.Name != "":
		if s := r.shared.byName[op.Name]; s != nil {
			r.addShared(answer, s, r.holdersOf(s.bucket))
		}
		return answer
	case op.Queue != "":
		if n := r.table.QueueNumber(op.Queue); n != 0 {
			r.addLimits(answer, n, true)
			if op.WithKeys {
				answer.Keys = r.keysOf(r.queues[n])
			}
		}
		return answer
	}
	r.listAll(answer, op)
	return answer
}

// maxPage is the maximum number of shared limits and queues on a page of all limits. A page also ends with the one that
// makes it have as many names and limits.
const maxPage = 1000

// listAll adds a page of all limits to an answer.
func (r *Rules) listAll(to *core.Answer, op *core.ListLimits) {
	rows, size := cmp.Or(max(op.Limit, 0), maxPage), 0
	isFull := func(id core.LimitID, added int) bool {
		rows--
		size += added
		r.table.Touched += added
		if rows > 0 && size < maxPage {
			return false
		}
		to.NextLimit = id
		return true
	}
	if op.After.Queue == "" {
		r.table.Touched += len(r.shared.byName)
		for _, name := range slices.Sorted(maps.Keys(r.shared.byName)) {
			if name <= op.After.Name {
				continue
			}
			s := r.shared.byName[name]
			r.addShared(to, s, nil)
			if isFull(core.LimitID{Name: name}, 1+len(s.Queues)+len(s.Types)) {
				return
			}
		}
	}
	walk := r.ruled.From(func(n uint32) bool { return r.queues[n].Name <= op.After.Queue })
	for n := walk.Next(); n != 0; n = walk.Next() {
		q := r.queues[n]
		r.addLimits(to, n, false)
		if isFull(core.LimitID{Queue: q.Name}, 1+len(q.rules.limits)+len(q.rules.sharing.Weights)) {
			return
		}
	}
}

// addShared adds a shared limit to an answer.
func (r *Rules) addShared(to *core.Answer, s *sharedLimit, held []core.SlotUse) {
	row := core.LimitInfo{Limit: s.Limit, Uses: []core.LimitUse{r.useOf(s.bucket, s.bucket.ready, held)}}
	row.Queues, row.Types = slices.Clone(s.Queues), slices.Clone(s.Types)
	to.Limits = append(to.Limits, row)
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
	for _, name := range q.rules.sorted() {
		l := q.rules.limits[name]
		row := core.LimitInfo{Limit: core.Limit{
			Selector: core.InQueue(q.Name, name.scope, name.of), Throttle: l.Throttle, FromConfig: l.fromConfig,
		}}
		if uses {
			row.Uses = r.usesOf(q, name, held)
		}
		to.Limits = append(to.Limits, row)
	}
	if s := q.SharingOf(); s != nil {
		to.Sharings = append(to.Sharings, *s)
	}
}

// useOf returns the current use of a bucket.
func (r *Rules) useOf(b *bucket, ready int, held []core.SlotUse) core.LimitUse {
	return core.LimitUse{Taken: b.slots, Ready: ready, NextAt: r.nextAt(b), Slots: held}
}

// usesOf returns the current use of a limit: the most used types or keys, by name.
func (r *Rules) usesOf(q *Queue, name limitName, held slotHolders) []core.LimitUse {
	if name.scope == core.ScopeQueue {
		if q.whole == nil { // a stored limit that limits nothing
			return []core.LimitUse{{Ready: q.Ready.Len()}}
		}
		return []core.LimitUse{r.useOf(q.whole, q.Ready.Len(), held[q.whole])}
	}
	uses := []core.LimitUse{}
	if q.lanes == nil {
		return uses
	}
	add := func(b *bucket) {
		use := r.useOf(b, b.ready, held[b])
		use.Name = b.name.of
		uses = append(uses, use)
	}
	if name.of != "" {
		if b := q.lanes.buckets[name]; b != nil {
			add(b)
		}
		return uses
	}
	looks := 0
	for id, b := range q.lanes.buckets {
		if looks++; looks > MaxLooks {
			break
		}
		if _, own := q.rules.limits[id]; id.scope == name.scope && (!own || id.of == "") {
			add(b)
		}
	}
	r.table.Touched += looks
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

// slotHolders are the leased jobs that have slots, the oldest lease first.
type slotHolders map[*bucket][]core.SlotUse

// MaxLooks is how many leased jobs a list of the limits of a queue or of a shared limit examines for the holders of
// slots, the oldest lease first, and how many buckets for each limit of all types or keys, and lanes for the keys.
const MaxLooks = 20_000

// holdersIn returns the holders of the slots in the buckets of a queue. It goes through the leased jobs only once,
// regardless of the number of limits, types and keys.
func (r *Rules) holdersIn(n uint32) slotHolders {
	held := slotHolders{}
	for h := range r.leasedJobs {
		if e := r.table.At(h); e.Queue == n {
			for b := range r.limitsOf(h).taken {
				r.addHolder(held, b, e)
			}
		}
	}
	return held
}

// holdersOf returns the holders of the slots in a bucket.
func (r *Rules) holdersOf(only *bucket) []core.SlotUse {
	held, left := slotHolders{}, only.slots
	for h := range r.leasedJobs {
		if left == 0 || len(held[only]) == core.MaxSlotUses {
			break
		}
		for b := range r.limitsOf(h).taken {
			if b == only {
				r.addHolder(held, b, r.table.At(h))
				left -= min(left, r.table.CostOf(h))
			}
		}
	}
	return held[only]
}

// leasedJobs goes through the first leased jobs, and returns those with limits.
func (r *Rules) leasedJobs(yield func(h uint32) bool) {
	walk := r.table.ByState[core.Leased].From(nil)
	for h, looks := walk.Next(), 0; h != 0 && looks < MaxLooks; h = walk.Next() {
		looks++
		r.table.Touched++
		if r.limitsOf(h) != nil && !yield(h) {
			return
		}
	}
}

// taken goes through the buckets in which a job has slots.
func (x *jobLimits) taken(yield func(*bucket) bool) {
	for i := range x.slots {
		if b := x.slots[i].bucket; b != nil && !yield(b) {
			return
		}
	}
}

func (r *Rules) addHolder(to slotHolders, b *bucket, e *table.Entry) {
	if len(to[b]) < core.MaxSlotUses {
		to[b] = append(to[b], r.slotUse(e))
	}
}

func (r *Rules) slotUse(e *table.Entry) core.SlotUse {
	s := core.SlotUse{Seq: e.Seq, LeasedAt: e.LeasedAt, Worker: r.host.HolderName(e)}
	if e.HolderKind == core.HeldByConn {
		s.Client = r.host.Client(e.Holder)
	}
	return s
}
