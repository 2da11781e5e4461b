package machine

import (
	"encoding/json"
	"strings"
	"time"

	"broker/core"
	"broker/core/internal/limit"
	"broker/core/internal/policy"
	"broker/core/internal/queue"
	"broker/core/internal/table"
	"broker/core/internal/telemetry"
	"broker/core/internal/timer"
)

// jobQueue is one queue: its jobs in order, its counters, its waiting workers. There may be a million, most with one
// job: what few queues need is behind pointers.
type jobQueue struct {
	limit.Queue
	metered      telemetry.Queue
	workers      int32        // registrations
	able         int32        // clients that are registered
	knownSince   core.Instant // when the queue was created
	visitMark    uint64       // the last list of names in which the queue occurred; see Machine.visitMark
	consumers    int32        // workers that are not registered; see consumers
	woken        int32        // workers that were woken for its jobs and have not responded yet
	waitList     queue.Line
	offered      bool // see Machine.offers
	wakeTimedOut bool // a worker was woken for a job and has not responded in time
	stored       bool // its settings are stored
	paused       bool
	pausedFor    time.Duration
	pauseTimer   timer.ID // when the pause ends; zero: when a client ends it
	unfitTimer   timer.ID // set while a search has left jobs that must not be handed out; see runnable
	idleTimer    timer.ID
	trimTimer    timer.ID // set while there are too many kept jobs
	lifetime     lifetime
	walks        bool   // a later step goes on with serving its clients; see Machine.serve
	walksAgain   bool   // and serves them once more
	holders      uint32 // see core.HoldQueue
	lasting      uint32 // during recovery only: restored jobs that keep the queue until the next restart
	used         uint32 // during recovery only: restored jobs that keep the queue for idleFor
	counts       counts
	max          core.QueueMax
	retention    core.Retention
	policy       *policy.Policy  // policy for its jobs; nil if there is none
	spent        *core.SpentRule // nil: none
}

// offer records that a queue may have a job for waiting clients. They are served at the end of the current decision,
// because decisions must not interleave.
func (m *Machine) offer(n uint32) {
	if q := m.queues[n]; q != nil && !q.offered && !q.waitList.Empty() {
		q.offered = true
		m.offers = append(m.offers, n)
	}
}

func (q *jobQueue) setSpent(rule core.SpentRule) {
	q.spent = nil
	if rule.Leases > 0 {
		q.spent = &rule
	}
}

func (q *jobQueue) spentRule() (rule core.SpentRule) {
	if q.spent != nil {
		rule = *q.spent
	}
	return rule
}

// lifetime says how long a queue without jobs, workers and settings is kept.
type lifetime uint8

const (
	whileWaitedOn lifetime = iota // it has had no job
	afterUse                      // for idleFor after its last job, or after a lease with KeepQueues
	untilRestart                  // unless there are too many names
	overRestarts                  // because of a stored job; see retainQueue
	untilDropped                  // made by CreateQueue or SetQueueMax
)

// lifetimeOf returns the lifetime of a queue that has had a job of a protocol. For stored jobs, see also retainQueue.
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

// extendLifetime sets the lifetime of a queue, unless the queue has a longer one.
func (m *Machine) extendLifetime(q *jobQueue, life lifetime) {
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

// full reports whether the maximum length of a queue refuses another job of this priority.
func (m *Machine) full(n uint32, priority int64) bool {
	q := m.queues[n]
	most := q.max.Of(priority)
	return most > 0 && q.Unfinished()+m.list.Joining(q.Name) >= int(most)
}

// queueNamed finds or creates a queue, which is listed from now on.
func (m *Machine) queueNamed(name string) (uint32, *jobQueue) {
	n, q := m.queueWaitedOn(name)
	m.table.Show(n)
	return n, q
}

// queueWaitedOn finds or creates a queue. A queue that was removed while workers still name it stays unlisted.
func (m *Machine) queueWaitedOn(name string) (uint32, *jobQueue) {
	if n := m.table.QueueNumber(name); n != 0 {
		return n, m.queues[n]
	}
	m.checkIdleQueues()
	name = strings.Clone(name)
	q := &jobQueue{metered: telemetry.Queue{Name: name}, knownSince: m.table.Now}
	q.Name = name
	m.meters.Add(&q.metered)
	n := m.table.AddQueue(&q.Queue.Queue)
	if int(n) == len(m.queues) {
		m.queues = append(m.queues, nil)
	}
	m.queues[n] = q
	m.limits.AddQueue(n, &q.Queue)
	q.policy = m.policies.OfQueue(name)
	m.setRetention(n, q)
	return n, q
}

// tooManyQueues reports whether there are so many queues that even queues with a long lifetime are removed once they
// are idle.
func (m *Machine) tooManyQueues() bool { return m.table.QueueCount() > maxKeptQueues }

// checkIdleQueues checks the next two queues while there are too many: they may have become idle when there were fewer
// queues.
func (m *Machine) checkIdleQueues() {
	if !m.tooManyQueues() {
		return
	}
	for range 2 {
		m.lookedIdle = (m.lookedIdle + 1) % uint32(len(m.queues))
		if q := m.queues[m.lookedIdle]; q != nil && q.idleTimer == 0 && m.idle(q) {
			q.idleTimer = m.table.Timers.Add(m.table.Now.Add(idleFor),
				timer.Owner{Kind: table.TimerIdle, Handle: m.lookedIdle})
		}
	}
}

// dropIdle removes a queue without settings once it is empty and no client waits on it.
func (m *Machine) dropIdle(n uint32) {
	q := m.queues[n]
	switch {
	case q == nil || q.workers > 0 || !m.idle(q):
	case q.lifetime == whileWaitedOn:
		m.forgetQueue(n)
	case q.idleTimer == 0: // it had jobs: for a while, clients learn that it is empty, not that it does not exist
		q.idleTimer = m.table.Timers.Add(m.table.Now.Add(idleFor), timer.Owner{Kind: table.TimerIdle, Handle: n})
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
	return (q.lifetime < untilRestart || q.lifetime == untilRestart && m.tooManyQueues()) && !q.paused &&
		q.workers == 0 && q.holders == 0 && q.waitList.Empty() && q.Jobs() == 0 && q.woken == 0 && !q.Sorting &&
		!q.Joining && !q.walks && q.max == (core.QueueMax{}) && !q.HasRules() && q.spent == nil
}

func (m *Machine) forgetQueue(n uint32) {
	if !m.queues[n].Hidden {
		m.queueEvent(m.queues[n], core.EventQueueRemoved)
	}
	m.table.Timers.Remove(&m.queues[n].idleTimer)
	m.table.Timers.Remove(&m.queues[n].trimTimer)
	m.table.Timers.Remove(&m.queues[n].pauseTimer)
	m.table.Timers.Remove(&m.queues[n].unfitTimer)
	m.table.RemoveQueue(n)
	m.queues[n] = nil
	m.consumers.epoch++
	m.limits.RemoveQueue(n)
}

// queueMeta is the stored form of the settings of a queue.
type queueMeta struct {
	Created bool          `json:"created,omitempty"`
	Paused  bool          `json:"paused,omitempty"`
	Until   core.Instant  `json:"paused_until,omitempty"`
	For     time.Duration `json:"paused_for,omitempty"`
	Kept    bool          `json:"kept,omitempty"`
	Max     maxMeta       `json:"limits,omitzero"`

	Spent core.SpentRule `json:"spent,omitzero"`
}

// maxMeta is a core.QueueMax as stored.
type maxMeta struct {
	High   uint32 `json:"MaxHigh"`
	Normal uint32 `json:"MaxNormal"`
	Low    uint32 `json:"MaxLow"`
}

// queueMetaPrefix is the prefix of the names of the meta entries of queues. It is on disk and never changes.
const queueMetaPrefix = "core/queue/"

// storeQueue stores a queue's settings unless they are the defaults.
func (m *Machine) storeQueue(q *jobQueue) {
	k := queueMeta{
		Created: q.lifetime == untilDropped, Paused: q.paused, Until: m.table.Timers.At(q.pauseTimer), For: q.pausedFor,
		Kept: q.lifetime == overRestarts,
		Max:  maxMeta(q.max), Spent: q.spentRule(),
	}
	name := queueMetaPrefix + q.Name
	if k == (queueMeta{}) {
		if q.stored {
			m.table.WriteMeta([]core.MetaEntry{{Name: name}})
		}
		q.stored = false
		return
	}
	m.table.WriteMeta([]core.MetaEntry{{Name: name, Value: table.Encode(k)}})
	q.stored = true
}

// maxKeptQueues limits the queue names that survive a restart because of a job: a client with a new queue name for each
// job must not fill the store.
const maxKeptQueues = 10_000

// retainQueue stores the name of a queue that has a job of a protocol whose clients expect empty queues to exist after
// a restart.
func (m *Machine) retainQueue(q *jobQueue) {
	if q.lifetime >= overRestarts || m.kept == maxKeptQueues || !m.opts.Persist {
		return
	}
	m.extendLifetime(q, overRestarts)
	m.storeQueue(q)
}

// restoreQueue restores the settings of a queue.
func (m *Machine) restoreQueue(name string, value []byte) error {
	var k queueMeta
	err := json.Unmarshal(value, &k)
	name = strings.TrimPrefix(name, queueMetaPrefix)
	var n uint32
	if k == (queueMeta{Spent: k.Spent}) { // only a rule does not make a queue known
		n = m.queueForLimits(name)
	} else {
		n, _ = m.queueNamed(name)
	}
	q := m.queues[n]
	q.stored = true
	q.setSpent(k.Spent)
	q.max = core.QueueMax(k.Max)
	m.setPause(n, q, k.Paused, k.Until, k.For)
	switch {
	case k.Created:
		m.extendLifetime(q, untilDropped)
	case k.Kept:
		m.extendLifetime(q, overRestarts)
	}
	return err
}

func (m *Machine) createQueue(c *client, op *core.CreateQueue) {
	_, q := m.queueNamed(op.Queue)
	m.extendLifetime(q, untilDropped)
	m.storeQueue(q)
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.table.Promise()})
}

func (m *Machine) setQueueMax(c *client, op *core.SetQueueMax) {
	n := m.table.QueueNumber(op.Queue)
	if n == 0 || m.queues[n].Hidden { // the queue does not exist for clients
		m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag})
		return
	}
	q := m.queues[n]
	q.max = op.Max
	m.extendLifetime(q, untilDropped)
	m.storeQueue(q)
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.table.Promise()})
}

func (m *Machine) dropQueue(c *client, op *core.DropQueue) {
	n := m.table.QueueNumber(op.Queue)
	if n == 0 && op.FoldCase {
		n = m.table.QueueFold(op.Queue)
	}
	if n == 0 {
		m.noQueue(c, op.Tag)
		return
	}
	q := m.queues[n]
	if q.workers > 0 || q.Count[core.Leased] > 0 {
		m.failed(c, op.Tag, core.ErrBusy)
		return
	}
	next := m.dropPage(n, q, c.protocol, max(op.Cursor, 1)-1, removals(op.Limit))
	if next == 0 && m.queues[n] == q {
		m.queueEvent(q, core.EventQueueRemoved)
		m.table.Hide(n)
		m.resetQueueSettings(n)
	}
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Cursor: next, Commit: m.table.Promise()})
}

// dropPage removes up to limit unfinished jobs of a queue without leases; next is not zero while there may be more.
// Blocked jobs are in no list of the queue, so a page may find few of them: it examines the jobs after number looked.
func (m *Machine) dropPage(n uint32, q *jobQueue, by core.Protocol, looked uint64, limit int) (next uint64) {
	lists := []*queue.List{&q.Ready, &q.Scheduled}
	if q.ByState != nil {
		lists = append(lists, &q.ByState[core.Retrying])
	}
	removed := 0
	for _, list := range lists {
		for ; list.Len() > 0; removed++ {
			if removed == limit {
				return looked + 1
			}
			m.table.Touched++
			m.purgeJob(list.Front(), by)
		}
	}
	if m.queues[n] != q || q.Count[core.Blocked] == 0 {
		return 0
	}
	walk := m.table.ByState[core.Blocked].From(func(h uint32) bool { return m.table.At(h).Seq <= looked })
	var found []uint64
	for looks := purgeLook * limit; looks > 0 && removed+len(found) < limit; looks-- {
		m.table.Touched++
		h := walk.Next()
		if h == 0 {
			looked = 0
			break
		}
		e := m.table.At(h)
		if looked = e.Seq; e.Queue == n {
			found = append(found, e.Seq)
		}
	}
	for _, seq := range found {
		if h := m.table.Handle(seq); h != 0 && m.table.At(h).Queue == n && m.table.At(h).State.Unfinished() {
			m.purgeJob(h, by)
		}
	}
	if m.queues[n] != q || q.Unfinished() == 0 {
		return 0
	}
	return looked + 1 // also if the removed jobs have released other jobs
}

// resetQueueSettings reverts the settings stored by CreateQueue, PauseQueue, SetQueueMax and jobs; an empty queue is
// removed.
func (m *Machine) resetQueueSettings(n uint32) {
	q := m.queues[n]
	if q.lifetime == overRestarts {
		m.kept--
	}
	m.meters.Drop(q.Name)
	m.setPause(n, q, false, 0, 0)
	q.lifetime = whileWaitedOn
	q.max = core.QueueMax{}
	m.storeQueue(q)
	m.offer(n)
	m.dropIdle(n)
}

// counts are what happened in a queue; see core.QueueCounts. They have room for the protocols that the queue has seen,
// usually one, since there may be a million queues.
type counts struct {
	by                      []protocolCounts
	expired, released, dead uint64
}

type protocolCounts struct {
	protocol                                           core.Protocol
	submitted, leased, done, failed, cancelled, paused uint64
}

// of are the counts of a protocol.
func (x *counts) of(p core.Protocol) *protocolCounts {
	for i := range x.by {
		if x.by[i].protocol == p {
			return &x.by[i]
		}
	}
	x.by = append(x.by, protocolCounts{protocol: p})
	return &x.by[len(x.by)-1]
}

func (x *counts) all() core.QueueCounts {
	all := core.QueueCounts{Expired: x.expired, Released: x.released, Dead: x.dead}
	for _, c := range x.by {
		p := c.protocol
		all.Submitted[p], all.Leased[p], all.Done[p] = c.submitted, c.leased, c.done
		all.Failed[p], all.Cancelled[p], all.Paused[p] = c.failed, c.cancelled, c.paused
	}
	return all
}
