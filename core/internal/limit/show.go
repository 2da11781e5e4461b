package limit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"broker/core/internal/table"
)

// The functions of this file are for comparisons in tests. They are not methods, so that the linker leaves them out of
// the program.

// ShowJob shows everything about the limits of a job that affects decisions.
func ShowJob(r *Rules, h uint32) string {
	x := r.limitsOf(h)
	if x == nil {
		return ""
	}
	var b strings.Builder
	for i := range x.slots {
		s := &x.slots[i]
		if *s == (bucketSlot{}) {
			continue
		}
		fmt.Fprintf(&b, " slot %d %v over %v until %v", i, s.bucket != nil, s.over, r.table.Timers.At(s.timer))
		if s.worker&WorkerKey != 0 {
			fmt.Fprintf(&b, " of %s", r.table.Workers.NameOf(uint32(s.worker)))
		}
	}
	if x.lane != nil {
		fmt.Fprintf(&b, " lane %v", x.lane.name)
	}
	return b.String()
}

// ShowQueue shows everything about the limits of a queue that affects decisions.
func ShowQueue(r *Rules, q *Queue) string {
	var b strings.Builder
	if w := q.whole; w != nil {
		fmt.Fprintf(&b, " whole: %v %d %v", w.limit, w.slots, w.paid)
	}
	if q.rules != nil {
		fmt.Fprintf(&b, " rules %v %+v %v", q.rules.limits, q.rules.sharing, q.rules.stored)
	}
	if x := q.order; x != nil {
		fmt.Fprintf(&b, " open %v of %d chains", table.Seqs(r.table, &x.open), len(x.chains))
	}
	if q.lanes == nil {
		return b.String()
	}
	lanes := slices.SortedFunc(maps.Values(q.lanes.names), func(x, y *lane) int {
		return strings.Compare(x.name.typ+"\x00"+x.name.key, y.name.typ+"\x00"+y.name.key)
	})
	for _, l := range lanes {
		fmt.Fprintf(&b, " lane %v: %v of %d, %d leased", l.name, table.Seqs(r.table, &l.ready), l.members, l.leased)
	}
	for _, k := range slices.SortedFunc(maps.Values(q.lanes.buckets), func(x, y *bucket) int {
		return strings.Compare(fmt.Sprint(x.name), fmt.Sprint(y.name))
	}) {
		fmt.Fprintf(&b, " bucket %v: %v %d %v", k.name, k.limit, k.slots, k.paid)
	}
	return b.String()
}

// ShowShared shows everything about shared limits that affects decisions.
func ShowShared(r *Rules) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.shared.byName)) {
		s := r.shared.byName[name]
		fmt.Fprintf(&b, " shared %+v: %d %v", s.Limit, s.bucket.slots, s.bucket.paid)
	}
	return b.String()
}
