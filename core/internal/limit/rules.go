package limit

import (
	"cmp"

	"broker/core"
	"broker/core/internal/queue"
	"broker/core/internal/slot"
	"broker/core/internal/table"
)

// Rules say which jobs of the queues may be handed out: limits, turns of keys and orders. The rules of one queue are
// queueRules. Not safe for concurrent use.
type Rules struct {
	table    *table.Table
	host     Host
	sortStep int // cost of a step of laneSort

	queues      []*Queue   // by number, from 1
	ruled       queue.List // those with rules, by name
	limitedJobs slot.Map[jobLimits]
	buckets     slot.Map[bucket] // of all queues
	serial      uint64           // of the newest bucket
	shared      sharedLimits
	sort        laneSort
	orders      orders

	dirtyRates []uint32 // buckets with rateDirty
	// restored rates that no bucket has taken yet, by the names of their meta entries
	rates          map[string]core.Instant
	restoredLimits []core.Limit // until they are applied

	keys keyRates
}

// New returns the limits for a table, which has no queues yet. sortStep is the cost of a step of laneSort; zero:
// usualSortStep.
func New(t *table.Table, host Host, sortStep int) *Rules {
	return &Rules{
		table: t, host: host, sortStep: cmp.Or(sortStep, usualSortStep), queues: make([]*Queue, 1),
		rates: map[string]core.Instant{},
		shared: sharedLimits{
			byName: map[string]*sharedLimit{}, ofQueue: map[string][]*sharedLimit{},
			ofType: map[string][]*sharedLimit{}, sorting: map[uint32]bool{},
		},
	}
}

func (r *Rules) nextSerial() uint64 {
	r.serial++
	return r.serial
}
