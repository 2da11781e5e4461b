package limit

import "slices"

// sharedUser is a queue that has lanes with a shared bucket. The next search of the queue releases its blocked groups
// when the bucket has room, so that room costs nothing for queues that nobody asks. The users with blocked groups are
// in a list, for the clients that wait. Both lists of a bucket go through the users themselves, so that a user that
// begins to wait costs no memory; queue.List is for handles of jobs.
type sharedUser struct {
	of      *bucket
	in      *lanes
	serial  uint64
	lanes   int
	ready   int // ready jobs of its lanes
	blocked blockList

	isWaiting  bool   // in of.waiting
	since      uint64 // the round in which it began to wait
	prev, next *sharedUser

	older, newer *sharedUser // of the bucket
}

// waitingUsers are the users that have found a shared bucket full since they were last offered, the longest first.
type waitingUsers struct {
	first, last *sharedUser

	// A round begins when the bucket has room. It offers each user once, so that it ends if none takes the room.
	round     uint64
	isOffered bool // the round goes on after these users are served; see OfferMore
	goesOn    bool // the round goes on with the deadline of the bucket
}

// userOf finds or creates the user of a shared bucket for a queue.
func (r *Rules) userOf(b *bucket, x *lanes) *sharedUser {
	u := b.users[x.queue]
	if u == nil {
		u = &sharedUser{of: b, in: x, serial: r.nextSerial(), older: b.newest}
		if b.users[x.queue] = u; u.older != nil {
			u.older.newer = u
		} else {
			b.oldest = u
		}
		b.newest = u
		x.users = append(x.users, u)
	}
	return u
}

// await adds a user to those that wait for room.
func (b *bucket) await(u *sharedUser) {
	if u.isWaiting {
		return
	}
	w := &b.waiting
	u.isWaiting, u.since, u.prev = true, w.round, w.last
	if w.last != nil {
		w.last.next = u
	} else {
		w.first = u
	}
	w.last = u
}

// endWait undoes await.
func (b *bucket) endWait(u *sharedUser) {
	if !u.isWaiting {
		return
	}
	w := &b.waiting
	if u.prev != nil {
		u.prev.next = u.next
	} else {
		w.first = u.next
	}
	if u.next != nil {
		u.next.prev = u.prev
	} else {
		w.last = u.prev
	}
	u.isWaiting, u.prev, u.next = false, nil, nil
}

// leaveShared removes a user without lanes.
func (x *lanes) leaveShared(u *sharedUser) {
	u.of.endWait(u)
	u.of.ready -= u.ready
	delete(u.of.users, x.queue)
	if u.older != nil {
		u.older.newer = u.newer
	} else {
		u.of.oldest = u.newer
	}
	if u.newer != nil {
		u.newer.older = u.older
	} else {
		u.of.newest = u.older
	}
	x.users = slices.DeleteFunc(x.users, func(o *sharedUser) bool { return o == u })
}

// leaveAllShared removes lanes that are being replaced from their shared buckets.
func (x *lanes) leaveAllShared() {
	for len(x.users) > 0 {
		x.leaveShared(x.users[len(x.users)-1])
	}
}

// releaseShared releases the groups of a queue that wait for shared buckets which have room.
func (r *Rules) releaseShared(x *lanes, s *search) {
	for _, u := range x.users {
		switch {
		case len(u.blocked) == 0:
		case r.isFull(u.of, 1):
			r.awaitRoom(x, u.of, 1)
		default:
			s.steps += r.release(x, u.of, &u.blocked, max(searchSteps-s.steps, 0))
		}
	}
}

// offerUsers goes on with a round: it offers as many queues with waiting clients as a shared bucket has room for.
func (r *Rules) offerUsers(b *bucket) {
	w, room := &b.waiting, 0
	if len(r.shared.sorting) == 0 {
		room = r.roomIn(b)
	}
	w.goesOn = false
	offered := 0
	for steps := 0; offered < room && w.first != nil && w.first.since < w.round; steps++ {
		if w.goesOn = steps == searchSteps; w.goesOn {
			r.armBucket(b, r.table.Now)
			break
		}
		u := w.first
		b.endWait(u)
		if r.host.Offer(u.in.queue) {
			offered++
		}
	}
	switch {
	case offered > 0 && !w.isOffered:
		w.isOffered = true
		r.shared.offered = append(r.shared.offered, b)
	case w.first != nil:
		r.waitForRoom(b, 1)
	}
}

// OfferMore goes on with the rounds of shared buckets in which the offered queues have left room. It reports whether
// it may have offered more queues.
func (r *Rules) OfferMore() bool {
	if len(r.shared.offered) == 0 {
		return false
	}
	offered := r.shared.offered
	r.shared.offered = nil
	for _, b := range offered {
		b.waiting.isOffered = false
		r.offerUsers(b)
	}
	return true
}
