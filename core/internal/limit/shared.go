package limit

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"broker/core"
	"broker/core/internal/table"
)

// A shared limit has one bucket for several queues and types. Each lane has the buckets of the shared limits for its
// queue or its type, so a queue whose jobs have shared limits has lanes. For limits of types, a queue gets lanes with
// its first job of such a type.

// sharedLimit is a shared limit with its bucket.
type sharedLimit struct {
	core.SharedLimit
	bucket *bucket
}

// sharedLimits holds all shared limits, and the limits of each queue and type in the order of their names.
type sharedLimits struct {
	byName          map[string]*sharedLimit
	ofQueue, ofType map[string][]*sharedLimit

	// sorting holds the queues whose leases are being counted because a limit has changed. While there are any, no
	// shared bucket allows a lease.
	sorting map[uint32]bool

	offered []*bucket // see OfferMore
}

// SharedPrefix is the prefix of the names of the meta entries of shared limits. It is on disk and never changes.
const SharedPrefix = "core/limit/"

// sharedMeta is a shared limit as stored. Names are bytes: they need not be text.
type sharedMeta struct {
	Queues [][]byte `json:"queues,omitempty"`
	Types  [][]byte `json:"types,omitempty"`
	Leased uint32   `json:"leased,omitempty"`
	Rate   float64  `json:"rate,omitempty"`
	Burst  uint32   `json:"burst,omitempty"`
}

// PutShared sets a shared limit, and returns the commit that the reply depends on.
func (r *Rules) PutShared(l core.SharedLimit) (core.Commit, error) {
	if err := r.sharedRefusal(&l); err != nil {
		return 0, err
	}
	l.Name, l.Queues, l.Types = strings.Clone(l.Name), clones(l.Queues), clones(l.Types)
	before, added := r.shared.byName[l.Name], r.newTypes(l.Types)
	s := r.setShared(l)
	r.table.LogMeta(core.MetaEntry{
		Name:  SharedPrefix + l.Name,
		Value: table.Encode(sharedMeta{asBytes(l.Queues), asBytes(l.Types), l.Leased, l.Rate, l.Burst}),
	})
	commit := r.table.Promise()
	if before != nil && slices.Equal(before.Queues, l.Queues) && slices.Equal(before.Types, l.Types) {
		r.hasRoom(s.bucket)
		return commit, nil
	}
	r.findTypes(added)
	r.sortShared(r.queuesUnder(s))
	return commit, nil
}

// clones returns a sorted copy of names without duplicates, which outlives the operation.
func clones(names []string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = strings.Clone(name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func asBytes(names []string) (all [][]byte) {
	for _, name := range names {
		all = append(all, []byte(name))
	}
	return all
}

// sharedRefusal returns why a shared limit is refused.
func (r *Rules) sharedRefusal(l *core.SharedLimit) error {
	wrong := func(what string) error { return fmt.Errorf("%w: %s", core.ErrInvalid, what) }
	tooLong := func(name string) bool { return name == "" || len(name) > core.MaxQueueName }
	switch {
	case tooLong(l.Name) || slices.ContainsFunc(l.Queues, tooLong) || slices.ContainsFunc(l.Types, tooLong):
		return wrong("a shared limit, its queues and its types need names; names are bounded")
	case len(l.Queues)+len(l.Types) == 0 || len(l.Queues)+len(l.Types) > core.MaxShared:
		return wrong("a shared limit has between 1 and 1,000 queues and types")
	case l.LeasedPerWorker != 0 || l.SlotFor != 0:
		return wrong("a shared limit has no limit for each worker and no time of slots")
	case l.Leased == 0 && l.Rate == 0:
		return wrong("it limits nothing")
	case l.Rate != 0 && !(l.Rate >= core.MinRate && l.Rate <= core.MaxRate) || l.Burst > 0 && l.Rate == 0:
		return wrong("a rate is between one a day and a million a second, and a burst needs a rate")
	case r.shared.byName[l.Name] == nil && len(r.shared.byName) >= core.MaxSharedLimits:
		return core.ErrFull
	}
	return nil
}

// setShared sets a shared limit. The use of a former limit of that name still counts.
func (r *Rules) setShared(l core.SharedLimit) *sharedLimit {
	s := &sharedLimit{SharedLimit: l}
	if before := r.shared.byName[l.Name]; before != nil {
		s.bucket = before.bucket
		s.bucket.limit = l.Throttle
	} else {
		s.bucket = r.addBucket(&bucket{
			name: limitName{name: l.Name}, limit: l.Throttle, users: map[uint32]*sharedUser{},
		})
	}
	r.unindexShared(r.shared.byName[l.Name])
	r.shared.byName[l.Name] = s
	for _, queue := range s.Queues {
		index(r.shared.ofQueue, queue, s)
	}
	for _, typ := range s.Types {
		index(r.shared.ofType, typ, s)
	}
	return s
}

// index adds a limit to the limits of a queue or type, which are in the order of their names.
func index(lists map[string][]*sharedLimit, of string, s *sharedLimit) {
	byName := func(o *sharedLimit, name string) int { return strings.Compare(o.Name, name) }
	at, _ := slices.BinarySearchFunc(lists[of], s.Name, byName)
	lists[of] = slices.Insert(lists[of], at, s)
}

// unindexShared removes a limit from the lists of limits by queue and type; nil: none.
func (r *Rules) unindexShared(s *sharedLimit) {
	if s == nil {
		return
	}
	for _, queue := range s.Queues {
		unindex(r.shared.ofQueue, queue, s)
	}
	for _, typ := range s.Types {
		unindex(r.shared.ofType, typ, s)
	}
}

func unindex(lists map[string][]*sharedLimit, of string, s *sharedLimit) {
	lists[of] = slices.DeleteFunc(lists[of], func(o *sharedLimit) bool { return o == s })
	if len(lists[of]) == 0 {
		delete(lists, of)
	}
}

// RemoveShared removes a shared limit, and returns the commit that the reply depends on.
func (r *Rules) RemoveShared(name string) (core.Commit, error) {
	s := r.shared.byName[name]
	if s == nil {
		return 0, core.ErrNoLimit
	}
	delete(r.shared.byName, name)
	r.unindexShared(s)
	r.table.LogMeta(core.MetaEntry{Name: SharedPrefix + s.Name})
	commit := r.table.Promise()
	affected := r.queuesUnder(s)
	r.dropBucket(s.bucket)
	s.bucket.limit = core.Throttle{} // jobs may keep slots of this limit until they are sorted
	r.sortShared(affected)
	return commit, nil
}

// newTypes returns the types that no shared limit has, but some jobs, apart from jobs in the queue of that name.
func (r *Rules) newTypes(types []string) (added []string) {
	for _, typ := range types {
		if len(r.shared.ofType[typ]) == 0 && r.table.Types.NumberOf(typ) != 0 {
			added = append(added, typ)
		}
	}
	return added
}

// queuesUnder returns the queues that are or may come under a limit, in the order of their numbers: those that it
// names, also by their usual type, and those with lanes of its types. findTypes finds the queues with jobs of types
// that no limit had.
func (r *Rules) queuesUnder(s *sharedLimit) []uint32 {
	found := map[uint32]bool{}
	for _, queue := range s.Queues {
		found[r.table.QueueNumber(queue)] = true
	}
	for _, typ := range s.Types {
		n := r.table.QueueNumber(typ)
		if found[n] = true; n != 0 && r.queues[n].Jobs() > 0 {
			r.queues[n].limitedTypes = true
		}
		for _, o := range r.shared.ofType[typ] {
			for n := range o.bucket.users {
				found[n] = true
			}
		}
	}
	for n := range s.bucket.users {
		found[n] = true
	}
	delete(found, 0)
	return slices.Sorted(maps.Keys(found))
}

// sortShared applies shared limits to some queues: to as many as a step allows now, to the others in further steps.
func (r *Rules) sortShared(queues []uint32) {
	left := r.sortStep
	for i, n := range queues {
		if left <= 0 {
			r.sort.later = append(r.sort.later, queues[i:]...)
			r.shared.sorting[0] = true
			r.sortAgain()
			return
		}
		left -= r.sortSharedQueue(n, left)
	}
}

// sortSharedQueue applies shared limits to a queue, and returns the cost.
func (r *Rules) sortSharedQueue(n uint32, most int) (cost int) {
	q := r.queues[n]
	if q == nil {
		return 1
	}
	cost = r.sortLanes(n, q, most)
	if q.Sorting {
		r.shared.sorting[n] = true
	}
	r.host.Offer(n)
	r.host.DropIdle(n)
	return cost
}

// countedShared opens the shared buckets again once the leases of all queues are counted.
func (r *Rules) countedShared(n uint32) {
	if !r.shared.sorting[n] {
		return
	}
	if delete(r.shared.sorting, n); len(r.shared.sorting) > 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(r.shared.byName)) {
		r.hasRoom(r.shared.byName[name].bucket)
	}
}

// hasShared reports whether there are shared limits.
func (r *Rules) hasShared() bool { return len(r.shared.byName) > 0 }

// needLanes gives a queue lanes before a job of a type joins it, if a shared limit applies to the queue or the type.
func (r *Rules) needLanes(n uint32, typ string) {
	if !r.hasShared() {
		return
	}
	q := r.queues[n]
	byType := len(r.shared.ofType[typ]) > 0
	if byType && (q.lanes == nil || !q.lanes.byType) || q.lanes == nil && len(r.shared.ofQueue[q.Name]) > 0 {
		q.limitedTypes = q.limitedTypes || byType
		q.Joining = true // the queue may have no job yet
		r.sortLanes(n, q, r.sortStep)
		q.Joining = false
	}
}

// sharedBuckets are the shared buckets for a lane.
func (r *Rules) sharedBuckets(x *lanes, name laneName) (all []*bucket) {
	if !r.hasShared() {
		return nil
	}
	for _, s := range r.shared.ofQueue[r.queues[x.queue].Name] {
		all = append(all, s.bucket)
	}
	if x.byType {
		for _, s := range r.shared.ofType[name.typ] {
			if !slices.Contains(all, s.bucket) {
				all = append(all, s.bucket)
			}
		}
	}
	return all
}

// RestoreShared restores a shared limit, which applies from RestoredShared on. Values beyond the current bounds are
// reduced to them.
func (r *Rules) RestoreShared(name string, value []byte) error {
	var k sharedMeta
	if err := json.Unmarshal(value, &k); err != nil {
		return err
	}
	l := core.SharedLimit{
		Name:     strings.TrimPrefix(name, SharedPrefix),
		Throttle: core.Throttle{Leased: k.Leased, Rate: k.Rate, Burst: k.Burst},
	}
	for _, queue := range k.Queues {
		l.Queues = append(l.Queues, string(queue))
	}
	for _, typ := range k.Types {
		l.Types = append(l.Types, string(typ))
	}
	if l.Name == "" || k.Rate < 0 || k.Burst > 0 && k.Rate == 0 {
		return errors.New("a shared limit without a name, or below zero")
	}
	if k.Rate > 0 {
		l.Rate = min(max(k.Rate, core.MinRate), core.MaxRate)
	}
	r.restoredLimits = append(r.restoredLimits, l)
	return nil
}

// RestoredShared applies the restored limits. It walks over all jobs, because no client waits yet.
func (r *Rules) RestoredShared() {
	var all []*sharedLimit
	found := map[uint32]bool{}
	for _, l := range r.restoredLimits {
		all = append(all, r.setShared(l))
	}
	r.restoredLimits = nil
	for _, s := range all {
		for _, queue := range s.Queues {
			if n := r.table.QueueNumber(queue); n != 0 {
				found[n] = true
			}
		}
	}
	if len(r.shared.ofType) > 0 {
		r.table.EachJob(func(_ uint32, e *table.Entry) {
			if q := r.queues[e.Queue]; !q.limitedTypes && len(r.shared.ofType[r.table.TypeOf(e)]) > 0 {
				found[e.Queue], q.limitedTypes = true, true
			}
		})
	}
	for _, n := range slices.Sorted(maps.Keys(found)) {
		r.sortSharedQueue(n, r.sortStep)
	}
}

// ListShared lists all shared limits, or only the limit called only.
func (r *Rules) ListShared(only string) []core.SharedLimitInfo {
	rows := []core.SharedLimitInfo{}
	for _, name := range slices.Sorted(maps.Keys(r.shared.byName)) {
		if only == "" || only == name {
			rows = append(rows, r.sharedInfo(r.shared.byName[name], only != ""))
		}
	}
	return rows
}

// sharedInfo describes a shared limit; with slots, also the holders of its slots.
func (r *Rules) sharedInfo(s *sharedLimit, slots bool) core.SharedLimitInfo {
	b := s.bucket
	row := core.SharedLimitInfo{SharedLimit: s.SharedLimit, Use: core.LimitUse{Taken: b.slots, NextAt: r.nextAt(b)}}
	row.Queues, row.Types = slices.Clone(s.Queues), slices.Clone(s.Types)
	row.Use.Ready = b.ready
	if slots {
		row.Use.Slots = r.holdersOf(b)
	}
	return row
}
