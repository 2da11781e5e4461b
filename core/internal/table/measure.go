package table

import (
	"math"

	"broker/core"
	"broker/core/internal/queue"
)

// Measure returns a number of a queue. As core.QueueNextAt, queues without ready jobs have the largest number.
func (t *Table) Measure(q *Queue, of core.QueueMeasure) int64 {
	switch of {
	case core.QueueReady:
		return int64(q.Class[ClassHigh]) + int64(q.Class[ClassNormal]) + int64(q.Class[ClassLow])
	case core.QueueScheduled:
		return int64(q.Count[core.Scheduled])
	case core.QueueLeased:
		return int64(q.Count[core.Leased])
	case core.QueueRetrying:
		return int64(q.Count[core.Retrying])
	case core.QueueBlocked:
		return int64(q.Count[core.Blocked])
	case core.QueueDone:
		return int64(q.Count[core.Done])
	case core.QueueDead:
		return int64(q.Count[core.Dead])
	case core.QueueNextAt:
		if h := q.Ready.Front(); h != 0 {
			return int64(min(t.At(h).ReadyAt, t.Now))
		}
	}
	return math.MaxInt64
}

// maxRuns is how many priorities OldestReady examines.
const maxRuns = 16

// OldestReady returns since when the longest-waiting ready job of a queue is ready; zero: no ready job. Within a
// priority, the list is ordered by that time, so it examines only the first job of each priority. With more than
// maxRuns priorities, it may miss the oldest job.
func (t *Table) OldestReady(q *Queue) core.Instant { return t.OldestIn(&q.Ready) }

// OldestIn is OldestReady for a list of ready jobs of one queue, in the order of Before.
func (t *Table) OldestIn(l *queue.List) (oldest core.Instant) {
	h := l.Front()
	for runs := 0; h != 0 && runs < maxRuns; runs++ {
		e := t.At(h)
		if at := max(min(e.ReadyAt, t.Now), e.CreatedAt); oldest == 0 || at < oldest {
			oldest = at
		}
		walk := l.From(func(h uint32) bool {
			x := t.At(h)
			return x.Priority() > e.Priority() ||
				x.Priority() == e.Priority() && (!x.Has(ScheduledOrder) || e.Has(ScheduledOrder))
		})
		h = walk.Next()
	}
	return oldest
}
