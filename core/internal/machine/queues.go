package machine

import (
	"encoding/json"
	"strings"
	"time"

	"broker/core"
	"broker/core/internal/queue"
	"broker/core/internal/telemetry"
	"broker/core/internal/timer"
)

type queueLine = queue.Line

// jobQueue is one queue: its jobs in order, its counters, its waiting workers.
type jobQueue struct {
	name         string
	ready        queue.List
	byState      *stateLists
	watch        telemetry.Queue
	scheduled    queue.List // for listings; the timer decides when they are due
	count        [len(core.States) + 1]int
	class        [3]int // ready jobs by classOf
	workers      int
	holders      int          // see core.HoldQueue
	knownSince   core.Instant // when it was made
	waitList     queueLine
	visitMark    uint64 // the last list of names in which it occurred; see Machine.visitMark
	offered      bool   // see Machine.offers
	wakeTimedOut bool   // a worker was woken for a job and has not responded in time
	woken        int    // workers that were woken for its jobs and have not responded yet
	paused       bool
	pausedUntil  core.Instant // zero: until it is resumed
	pausedFor    time.Duration
	pauseTimer   timer.ID
	lifetime     lifetime
	stored       bool // its settings are stored
	hidden       bool // purged: no row until a job is ready here or a client names it
	sorting      bool // its limits have changed; see laneSort
	limits       core.Limits
	counts       core.QueueCounts
	idleTimer    timer.ID
	retention    core.Retention
	keptDone     queue.List        // jobs that stay for the retention alone
	trimTimer    timer.ID          // set while there are too many of them
	policy       *queuePolicy      // its limits and sharing; nil if it has none
	rules        *jobPolicy        // for its jobs; nil if there are none
	lanes        *lanes            // nil unless these tell its jobs apart
	order        *ordering         // nil unless the jobs of each key are handed out in order
	limitedTypes bool              // it has had jobs of types with shared limits
	slots        uint32            // leases that count against the throttle
	perWorker    map[uint64]uint32 // the same by holder; see slotFor
	lasting      int               // restored jobs that make it known until the next restart; until Restored only
	used         int               // likewise until it was idle for long
}

// lifetime says how long the name of a queue stays known that has no jobs, workers or settings.
type lifetime uint8

const (
	whileWaitedOn lifetime = iota // it has had no job
	afterUse                      // for idleFor after its last job, or after a lease with KeepQueues
	untilRestart                  // unless there are too many names
	overRestarts                  // because of a stored job; see retainQueue
	untilDropped                  // made by CreateQueue or LimitQueue
)

// lifetimeOf is that of a queue which has had a job of a protocol, unless the job is stored; see retainQueue.
func lifetimeOf(origin core.Protocol) lifetime {
	switch origin.QueueLifetime() {
	case core.QueueWhileHeld:
		return whileWaitedOn
	case core.QueueWhileUsed:
		return afterUse
	case core.QueueUntilRestart, core.QueueForGood:
	}
	return untilRestart
}

// known extends the lifetime of a queue.
func (m *Machine) known(q *jobQueue, life lifetime) {
	if life <= q.lifetime {
		return
	}
	if q.lifetime == overRestarts {
		m.kept--
	}
	if life == overRestarts {
		m.kept++
	}
	q.lifetime = life
}

// Priority classes, as in gearmand and maxqueue.
const (
	classHigh = iota
	classNormal
	classLow
)

func classOf(priority int64) int {
	switch {
	case priority > 0:
		return classHigh
	case priority == 0:
		return classNormal
	}
	return classLow
}

// unfinished is the number of unfinished jobs.
func (q *jobQueue) unfinished() int {
	return q.count[core.Scheduled] + q.count[core.Blocked] + q.count[core.Ready] + q.count[core.Leased] +
		q.count[core.Retrying]
}

// full reports whether the limits of a queue refuse another job of a priority.
func (m *Machine) full(n uint32, priority int64) bool {
	q := m.queues[n]
	limit := [3]uint32{q.limits.MaxHigh, q.limits.MaxNormal, q.limits.MaxLow}[classOf(priority)]
	return limit > 0 && q.unfinished()+m.run.joining(q.name) >= int(limit)
}

func (q *jobQueue) jobs() int { return q.unfinished() + q.count[core.Done] + q.count[core.Dead] }

// queueNamed finds or makes a queue, which is in the list of rows from now on.
func (m *Machine) queueNamed(name string) (uint32, *jobQueue) {
	n, q := m.queueWaitedOn(name)
	m.show(n, q)
	return n, q
}

// queueWaitedOn finds or makes a queue. One that was removed while workers still name it stays out of the list of rows.
func (m *Machine) queueWaitedOn(name string) (uint32, *jobQueue) {
	if n := m.names[name]; n != 0 {
		return n, m.queues[n]
	}
	m.lookForIdle()
	name = strings.Clone(name)
	q := &jobQueue{name: name, watch: telemetry.Queue{Name: name}, knownSince: m.now}
	m.meters.Add(&q.watch)
	var n uint32
	if k := len(m.freeQ); k > 0 {
		n, m.freeQ = m.freeQ[k-1], m.freeQ[:k-1]
		m.queues[n] = q
	} else {
		n = uint32(len(m.queues))
		m.queues = append(m.queues, q)
	}
	m.nameQueue(n, q)
	q.rules = m.policies[core.PolicyOfQueue][name]
	m.setRetention(n, q)
	return n, q
}

// tooMany reports whether there are so many queues that names which protocols keep are forgotten too, once they are idle.
func (m *Machine) tooMany() bool { return len(m.names) > maxKeptQueues }

// lookForIdle looks at the next two queues while there are too many: they may have become idle when there were fewer.
func (m *Machine) lookForIdle() {
	if !m.tooMany() {
		return
	}
	for range 2 {
		m.lookedIdle = (m.lookedIdle + 1) % uint32(len(m.queues)) //nolint:gosec // queues have 32-bit numbers
		if q := m.queues[m.lookedIdle]; q != nil && q.idleTimer == 0 && m.idle(q) {
			q.idleTimer = m.timers.Add(m.now.Add(idleFor), timer.Owner{Kind: timerIdle, Handle: m.lookedIdle})
		}
	}
}

// dropIdle removes a queue without settings once it is empty and no client waits on it.
func (m *Machine) dropIdle(n uint32) {
	q := m.queues[n]
	switch {
	case q == nil || !m.idle(q):
	case q.lifetime == whileWaitedOn:
		m.forgetQueue(n)
	case q.idleTimer == 0: // it had jobs: clients that ask soon learn that it is empty, not that it does not exist
		q.idleTimer = m.timers.Add(m.now.Add(idleFor), timer.Owner{Kind: timerIdle, Handle: n})
	}
}

// idleFor is how long to keep a queue without jobs or workers.
const idleFor = 10 * time.Minute

// idleTimeout removes a queue that has been idle.
func (m *Machine) idleTimeout(n uint32) {
	q := m.queues[n]
	q.idleTimer = 0
	if m.idle(q) {
		m.forgetQueue(n)
	}
}

// idle reports whether the queue can be removed without loss.
func (m *Machine) idle(q *jobQueue) bool {
	return (q.lifetime < untilRestart || q.lifetime == untilRestart && m.tooMany()) && !q.paused && q.workers == 0 && q.holders == 0 && q.waitList.Empty() && q.jobs() == 0 && q.woken == 0 && !q.sorting &&
		q.limits == (core.Limits{}) && q.policy == nil
}

func (m *Machine) forgetQueue(n uint32) {
	if !m.queues[n].hidden {
		m.queueEvent(m.queues[n], core.EventQueueRemoved)
	}
	m.timers.Remove(&m.queues[n].idleTimer)
	m.timers.Remove(&m.queues[n].trimTimer)
	m.timers.Remove(&m.queues[n].pauseTimer)
	m.unnameQueue(n, m.queues[n])
	m.queues[n] = nil
	m.freeQ = append(m.freeQ, n)
}

// queueMeta is the stored form of the settings of a queue.
type queueMeta struct {
	Created bool          `json:"created,omitempty"`
	Paused  bool          `json:"paused,omitempty"`
	Until   core.Instant  `json:"paused_until,omitempty"`
	For     time.Duration `json:"paused_for,omitempty"`
	Kept    bool          `json:"kept,omitempty"`
	Limits  core.Limits   `json:"limits,omitzero"`
}

const queueMetaPrefix = "core/queue/"

// storeQueue stores a queue's settings unless they are the defaults.
func (m *Machine) storeQueue(q *jobQueue) {
	k := queueMeta{
		Created: q.lifetime == untilDropped, Paused: q.paused, Until: q.pausedUntil, For: q.pausedFor, Kept: q.lifetime == overRestarts,
		Limits: q.limits,
	}
	k.Limits.Throttle = core.Throttle{} // belongs to the configuration
	name := queueMetaPrefix + q.name
	if k == (queueMeta{}) {
		if q.stored {
			m.writeMeta([]core.MetaEntry{{Name: name}})
		}
		q.stored = false
		return
	}
	value, err := json.Marshal(k)
	if err != nil {
		panic("machine: a queue's settings cannot be encoded: " + err.Error())
	}
	m.writeMeta([]core.MetaEntry{{Name: name, Value: value}})
	q.stored = true
}

// maxKeptQueues limits the names that are kept over a restart because of a job: a client that invents a name per job must not
// fill the store with them.
const maxKeptQueues = 10_000

// retainQueue stores the name of a queue with a job of a kind whose clients expect drained queues to be known after a restart.
func (m *Machine) retainQueue(q *jobQueue) {
	if q.lifetime >= overRestarts || m.kept == maxKeptQueues || !m.opts.Persist {
		return
	}
	m.known(q, overRestarts)
	m.storeQueue(q)
}

// restoreQueue restores the settings of a queue.
func (m *Machine) restoreQueue(name string, value []byte) error {
	var k queueMeta
	err := json.Unmarshal(value, &k)
	n, q := m.queueNamed(strings.TrimPrefix(name, queueMetaPrefix))
	k.Limits.Throttle = q.limits.Throttle
	q.stored, q.limits = true, k.Limits
	m.setPause(n, q, k.Paused, k.Until, k.For)
	switch {
	case k.Created:
		m.known(q, untilDropped)
	case k.Kept:
		m.known(q, overRestarts)
	}
	return err
}

func (m *Machine) createQueue(c *client, op *core.CreateQueue) {
	_, q := m.queueNamed(op.Queue)
	m.known(q, untilDropped)
	m.storeQueue(q)
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.promise()})
}

func (m *Machine) limitQueue(c *client, op *core.LimitQueue) {
	n := m.names[op.Queue]
	if n == 0 || m.queues[n].hidden { // to all the world there is no such queue
		m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag})
		return
	}
	q := m.queues[n]
	throttle := q.limits.Throttle
	q.limits = op.Limits
	q.limits.Throttle = throttle
	m.known(q, untilDropped)
	m.storeQueue(q)
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.promise()})
}

func (m *Machine) dropQueue(c *client, op *core.DropQueue) {
	n := m.names[op.Queue]
	if n == 0 && op.FoldCase {
		n = m.queueFold(op.Queue)
	}
	if n == 0 {
		m.noQueue(c, op.Tag)
		return
	}
	q := m.queues[n]
	if q.workers > 0 || q.count[core.Leased] > 0 {
		m.failed(c, op.Tag, core.ErrBusy)
		return
	}
	limit := op.Limit
	if limit <= 0 {
		limit = 1000
	}
	next := m.dropPage(n, q, c.protocol, max(op.Cursor, 1)-1, limit)
	if next == 0 && m.queues[n] == q {
		m.queueEvent(q, core.EventQueueRemoved)
		m.hide(n, q)
		m.resetQueueSettings(n)
	}
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Cursor: next, Commit: m.promise()})
}

// dropPage removes up to limit unfinished jobs of a queue without leases; next is not zero while there may be more. Blocked
// jobs are in no list of the queue, so that a page may find few of them: it looks at those behind number looked.
func (m *Machine) dropPage(n uint32, q *jobQueue, by core.Protocol, looked uint64, limit int) (next uint64) {
	lists := []*queue.List{&q.ready, &q.scheduled}
	if q.byState != nil {
		lists = append(lists, &q.byState[core.Retrying])
	}
	removed := 0
	for _, list := range lists {
		for ; list.Len() > 0; removed++ {
			if removed == limit {
				return looked + 1
			}
			m.purgeJob(list.Front(), by)
		}
	}
	if m.queues[n] != q || q.count[core.Blocked] == 0 {
		return 0
	}
	walk := m.byState[core.Blocked].From(func(h uint32) bool { return m.jobs.at(h).seq <= looked })
	var found []uint64
	for looks := 50 * limit; looks > 0 && removed+len(found) < limit; looks-- {
		h := walk.Next()
		if h == 0 {
			looked = 0
			break
		}
		e := m.jobs.at(h)
		if looked = e.seq; e.queue == n {
			found = append(found, e.seq)
		}
	}
	for _, seq := range found {
		if h := m.bySeq.get(seq); h != 0 && m.jobs.at(h).queue == n && m.jobs.at(h).state.Unfinished() {
			m.purgeJob(h, by)
		}
	}
	if m.queues[n] != q || q.unfinished() == 0 {
		return 0
	}
	return looked + 1 // also when jobs were let go by those that were removed
}

// resetQueueSettings reverts what CreateQueue, PauseQueue, LimitQueue and jobs stored; the queue is removed if it is empty.
func (m *Machine) resetQueueSettings(n uint32) {
	q := m.queues[n]
	if q.lifetime == overRestarts {
		m.kept--
	}
	m.meters.Drop(q.name)
	m.setPause(n, q, false, 0, 0)
	q.lifetime, q.limits = whileWaitedOn, core.Limits{Throttle: q.limits.Throttle}
	m.storeQueue(q)
	m.offer(n)
	m.dropIdle(n)
}
