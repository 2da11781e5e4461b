package limit

import (
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
	core.Limit
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

// putShared sets a shared limit, and returns the commit that the reply depends on.
func (r *Rules) putShared(to *core.Limit) core.Commit {
	l := *to
	l.Name, l.Queues, l.Types = strings.Clone(l.Name), clones(l.Queues), clones(l.Types)
	before, added := r.shared.byName[l.Name], r.newTypes(l.Types)
	s := r.setShared(l)
	r.storeShared(&l)
	commit := r.table.Promise()
	if before != nil && slices.Equal(before.Queues, l.Queues) && slices.Equal(before.Types, l.Types) {
		r.hasRoom(s.bucket)
		return commit
	}
	r.findTypes(added)
	r.sortUnder(s)
	return commit
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

// setShared sets a shared limit. The use of a former limit of that name still counts.
func (r *Rules) setShared(l core.Limit) *sharedLimit {
	s := &sharedLimit{Limit: l}
	if before := r.shared.byName[l.Name]; before != nil {
		s.bucket = before.bucket
		s.bucket.limit = l.Throttle
	} else {
		s.bucket = r.addBucket(&bucket{
			name: limitName{of: l.Name}, limit: l.Throttle, users: map[uint32]*sharedUser{},
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

// removeShared removes a shared limit, and returns the commit that the reply depends on.
func (r *Rules) removeShared(name string) (core.Commit, error) {
	s := r.shared.byName[name]
	if s == nil {
		return 0, core.ErrNoLimit
	}
	delete(r.shared.byName, name)
	r.unindexShared(s)
	r.table.LogMeta(core.MetaEntry{Name: SharedPrefix + s.Name})
	commit := r.table.Promise()
	r.dropBucket(s.bucket)
	s.bucket.limit = core.Throttle{} // jobs may keep slots of this limit until they are sorted
	r.sortUnder(s)
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

// sortUnder applies shared limits to the queues that are or may come under a limit: to as many as a step allows now, to
// the others in further steps. These are the queues that it names, also by their usual type, and those with lanes of
// its types. findTypes finds the queues with jobs of types that no limit had.
func (r *Rules) sortUnder(s *sharedLimit) {
	x := &r.sort
	for _, queue := range s.Queues {
		x.later = append(x.later, r.table.QueueNumber(queue))
	}
	found := map[*bucket]bool{}
	usersOf := func(b *bucket) {
		if b.oldest != nil && !found[b] {
			found[b] = true
			x.users = append(x.users, userSort{b, r.nextSerial()})
		}
	}
	usersOf(s.bucket)
	for _, typ := range s.Types {
		if n := r.table.QueueNumber(typ); n != 0 {
			x.later = append(x.later, n)
			r.queues[n].limitedTypes = r.queues[n].limitedTypes || r.queues[n].Jobs() > 0
		}
		for _, o := range r.shared.ofType[typ] {
			if o != s { // all limits of a type have the same lanes of it
				usersOf(o.bucket)
				break
			}
		}
	}
	r.sortLater(r.sortStep)
	if x.hasLater() {
		r.shared.sorting[0] = true
	}
	r.sortAgain()
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
