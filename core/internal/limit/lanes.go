package limit

import (
	"strings"

	"broker/core"
	"broker/core/internal/queue"
	"broker/core/internal/slot"
	"broker/core/internal/table"
)

// If limits or fairness treat the jobs of a queue differently, the queue has lanes: one for each combination of type
// and key of its jobs. The queue still has its list of all ready jobs; each lane lists its part of them. Lanes with a
// ready job are in groups, see laneGroup, and the search for the next job examines groups in place of lanes.
//
//	ready:  a1 b1 a2 c1 b2
//	lanes:  a: a1 a2    b: b1 b2    c: c1
//	groups: a c         b: the bucket of b is full
//
// Other queues have no lanes and only pay for a nil check.

// lanes are the lanes of one queue.
type lanes struct {
	queue       uint32
	rules       *queueRules
	key         core.JobKey
	byType      bool // types have limits, so jobs of different types are in different lanes
	byKey       bool // keys have limits or take turns
	fair        bool // the keys take turns
	buckets     map[limitName]*bucket
	names       map[laneName]*lane
	slots       slot.Map[lane]
	constraints map[string]*constraint // by constraintName
	groups      slot.Map[laneGroup]
	open        queue.List    // numbers of groups that have a lane and are not blocked, by groupBefore
	users       []*sharedUser // of the shared buckets that its lanes have
	turn        uint64        // of the key that was served last
	releasing   []*bucket     // with room, and with groups that the next search releases

	before      queue.Before // of jobs
	laneBefore  queue.Before // of lanes in a group
	groupBefore queue.Before

	former  *lanes // while jobs are sorted: the former lanes, whose rates may be partly used
	retired bool   // the queue has newer lanes
}

// laneName is the type and key of the jobs in a lane; empty if the lanes do not depend on them.
type laneName struct{ typ, key string }

// lane is part of a queue.
type lane struct {
	of      *lanes
	name    laneName
	number  uint32
	members int // jobs of the lane in any state
	leased  int
	ready   queue.List
	buckets []*bucket // of its queue, type and key, nil if these have no limit; then shared buckets
	byType  *constraint
	byKey   *constraint // nil: its key has no limit
	group   *laneGroup  // nil: no job is ready
	turn    uint64      // of its key when it joined the group
}

// Indexes of lane.buckets and jobLimits.slots.
const (
	ofQueue  = 0
	ofType   = 1
	ofKey    = 2
	ofShared = 3 // and following
)

// own returns the buckets that only lanes have; some may be nil.
func (l *lane) own() []*bucket { return l.buckets[ofType:ofShared] }

// newLanes returns the lanes of a queue, without jobs; nil if its rules need none.
func (r *Rules) newLanes(n uint32, s *queueRules, former *lanes) *lanes {
	shared := len(r.shared.byName) > 0 && len(r.shared.ofQueue[r.queues[n].Name]) > 0
	byType := r.queues[n].limitedTypes && len(r.shared.ofType) > 0
	if s == nil {
		if !shared && !byType {
			return nil
		}
		s = &queueRules{}
	}
	x := &lanes{
		queue: n, rules: s, buckets: map[limitName]*bucket{}, names: map[laneName]*lane{},
		constraints: map[string]*constraint{}, key: s.sharing.Key, fair: s.sharing.Fair, former: former,
	}
	x.byKey, x.byType = x.fair, byType
	for name := range s.limits {
		switch name.scope {
		case core.ScopeQueue:
		case core.ScopeType:
			x.byType = true
		case core.ScopeKey:
			x.byKey = x.byKey || s.sharing.Key.Kind != core.KeyNone
		}
	}
	if rate := r.queues[n].Throttle().Rate; !x.byType && !x.byKey && rate == 0 && !shared {
		return nil
	}
	r.orderLanes(x)
	return x
}

// KeyOf returns the key of a job.
func KeyOf(k core.JobKey, tags []string, unique string) string {
	switch k.Kind {
	case core.KeyNone:
	case core.KeyTag:
		for _, tag := range tags {
			if name, value, _ := strings.Cut(tag, ":"); name == k.Tag {
				return value
			}
		}
	case core.KeyUnique:
		key, _, _ := strings.Cut(unique, ":")
		return key
	}
	return ""
}

// nameFor returns the name of the lane for a type and key.
func (x *lanes) nameFor(typ string, key string) (name laneName) {
	if x.byType {
		name.typ = typ
	}
	if x.byKey {
		name.key = key
	}
	return name
}

// joinLane puts a job into the lane of its type and key. The job must not be in the list of ready jobs.
func (r *Rules) joinLane(h uint32, x *lanes, name laneName) {
	l := x.names[name]
	if l == nil {
		name = laneName{strings.Clone(name.typ), strings.Clone(name.key)}
		l = &lane{of: x, name: name}
		l.number = x.slots.Add(l)
		x.names[name] = l
		r.constrain(x, l)
	}
	l.members++
	r.ensureLimits(h).lane = l
}

// JoinLaneOf puts a job into the lane for its payload, if its queue has lanes, and behind the earlier jobs of its key,
// if the queue is ordered.
func (r *Rules) JoinLaneOf(h uint32, e *table.Entry, j *core.Job) {
	if r.queues[e.Queue].DistinguishesJobs() || r.hasShared() {
		r.joinLaneOf(h, e, j)
	}
}

func (r *Rules) joinLaneOf(h uint32, e *table.Entry, j *core.Job) {
	r.needLanes(e.Queue, r.table.TypeOf(e))
	r.JoinOrder(h, e)
	if x := r.queues[e.Queue].lanes; x != nil && r.laneOf(h, x) == nil {
		r.joinLane(h, x, x.nameFor(r.table.TypeOf(e), KeyOf(x.key, j.Tags, j.UniqueKey)))
	}
}

// LeaveLane removes a job from its lane. The job must not be in the list of ready jobs or have a slot.
func (r *Rules) LeaveLane(h uint32) {
	x := r.limitsOf(h)
	if x == nil || x.lane == nil {
		return
	}
	l, all := x.lane, x.lane.of
	x.lane = nil
	if l.members--; l.members > 0 || all.retired {
		return
	}
	delete(all.names, l.name)
	all.slots.Remove(l.number)
	r.unconstrain(all, l)
}

// Relane puts a job into another lane if its type or key has changed.
func (r *Rules) Relane(h uint32, e *table.Entry, j *core.Job) {
	r.needLanes(e.Queue, j.Type)
	r.reorder(h, e)
	all := r.queues[e.Queue].lanes
	if r.laneOf(h, all) == nil {
		return // no lanes, or the job will be sorted into them
	}
	x := r.limitsOf(h)
	name := all.nameFor(j.Type, KeyOf(all.key, j.Tags, j.UniqueKey))
	if x.lane.name == name {
		return
	}
	open := e.State == core.Ready && r.isOpen(r.queues[e.Queue], h)
	if open {
		all.remove(r, x.lane, h)
	}
	r.freeLaneSlots(h)
	r.LeaveLane(h)
	r.joinLane(h, all, name)
	switch {
	case open:
		all.add(r, x.lane, h)
		r.host.Offer(e.Queue)
	case e.Has(table.Held):
		r.TakeSlot(h, e, r.SlotKey(e))
	}
}

// PushReady adds a job to the ready jobs of its queue.
func (r *Rules) PushReady(q *Queue, h uint32) {
	q.Ready.Push(h, r.table.Before)
	switch {
	case q.order != nil:
		r.readyInOrder(q, h)
	case q.lanes != nil:
		r.offerable(q, h)
	}
}

// offerable adds a ready job to the jobs that may be handed out.
func (r *Rules) offerable(q *Queue, h uint32) {
	if q.order != nil {
		q.order.open.Push(h, q.order.before)
	}
	if l := r.laneOf(h, q.lanes); l != nil {
		q.lanes.add(r, l, h)
	}
}

// RemoveReady removes a job from the ready jobs of its queue.
func (r *Rules) RemoveReady(q *Queue, h uint32) {
	q.Ready.Remove(h, r.table.Before)
	switch {
	case q.order != nil:
		r.unreadyInOrder(q, h)
	case q.lanes != nil || q.whole != nil:
		r.notOfferable(q, h)
	}
}

// notOfferable undoes offerable.
func (r *Rules) notOfferable(q *Queue, h uint32) {
	if q.order != nil {
		q.order.open.Remove(h, q.order.before)
	}
	if l := r.laneOf(h, q.lanes); l != nil {
		q.lanes.remove(r, l, h)
	}
	if r.table.CostOf(h) > 1 {
		r.host.Offer(r.table.At(h).Queue) // a job behind it may fit where this one does not
	}
}

// Open is the list of the ready jobs of a queue that may be handed out if limits allow it.
func (q *Queue) Open() *queue.List {
	if q.order != nil {
		return &q.order.open
	}
	return &q.Ready
}

// add puts a ready job into its lane. A key does not save up turns while it has no ready job.
func (x *lanes) add(r *Rules, l *lane, h uint32) {
	l.countReady(1)
	to := l.byType
	switch g := l.group; {
	case g == nil:
		if b := l.buckets[ofKey]; x.fair {
			b.turn = max(b.turn, x.turn)
		}
	case x.before(l.ready.Front(), h):
		l.ready.Push(h, x.before)
		return
	default:
		to = g.under
		x.leaveGroup(l)
	}
	l.ready.Push(h, x.before)
	x.joinGroup(r, l, to)
}

// remove removes a ready job from its lane.
func (x *lanes) remove(r *Rules, l *lane, h uint32) {
	l.countReady(-1)
	if l.ready.Front() != h {
		l.ready.Remove(h, x.before)
		return
	}
	to := l.group.under
	x.leaveGroup(l)
	if l.ready.Remove(h, x.before); l.ready.Len() > 0 {
		x.joinGroup(r, l, to)
	}
}

// countReady counts ready jobs in the buckets of a lane.
func (l *lane) countReady(n int) {
	for _, b := range l.own() {
		if b != nil {
			b.ready += n
		}
	}
	for _, u := range l.byType.users {
		u.ready += n
		u.of.ready += n
	}
}
