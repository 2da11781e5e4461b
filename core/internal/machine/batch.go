package machine

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// A batch is a set of jobs with up to two callback jobs, which are blocked until all members have been executed (Complete)
// or are done (Success). Counts of members and child batches are derived from those, so that only what cannot be derived
// after a restart is stored with the batch.
//
//	open ─ CloseBatch ─▶ every member executed, Complete of all children done ─▶ Complete runs
//	  ▲                    all members done, Success of all children done ─▶ Success runs ─▶ kept for retainFinished
//	  └── Reopen ──┘

const (
	retainFinished = 30 * time.Minute // how long a finished batch can be inspected
	reopenedFor    = 30 * time.Minute // how long a reopened batch may stay uncommitted
)

// batch is one batch.
type batch struct {
	batchMeta
	number   uint64
	slot     uint32 // in batchSlots: what its deadline names
	members  int    // existing ones
	done     int
	untried  int // existing members that were never executed
	failing  int // existing members that have failed at least once
	children childCount
	deadline timer.ID
	dirty    bool
	// The commit of its last change, including the counts of its members and children.
	changedIn core.Commit
	// The list of all batches, in the order of their numbers.
	older, newer *batch
}

// childCount counts child batches.
type childCount struct {
	all        int
	incomplete int // Complete is not done
	unfinished int // Success is not done
}

// batchMeta is the stored form of a batch.
type batchMeta struct {
	Parent       uint64             `json:"parent,omitempty"`
	Description  string             `json:"description,omitempty"`
	Owner        string             `json:"owner,omitempty"`
	CreatedAt    core.Instant       `json:"created_at"`
	Until        core.Instant       `json:"until,omitempty"` // not committed by then, or finished and kept till then
	Total        int                `json:"total"`
	Lost         int                `json:"lost,omitempty"`      // members that ended as failed
	KidsLost     int                `json:"kids_lost,omitempty"` // child batches that are gone without success
	Committed    bool               `json:"committed,omitempty"`
	Reopened     bool               `json:"reopened,omitempty"` // it was committed before
	CompleteJob  uint64             `json:"complete_job,omitempty"`
	SuccessJob   uint64             `json:"success_job,omitempty"`
	Complete     core.CallbackState `json:"complete,omitempty"`
	Success      core.CallbackState `json:"success,omitempty"`
	CallbackLost bool               `json:"callback_lost,omitempty"` // one is gone without being done
	CompleteLost lostCallback       `json:"complete_lost,omitempty"`
	SuccessLost  lostCallback       `json:"success_lost,omitempty"`
}

// lostCallback is the state, plus one, of a callback that is gone without being done; zero if it is not lost. The batch continues
// as if it were done.
type lostCallback uint8

// shown is the state of a callback as reported to clients.
func (l lostCallback) shown(st core.CallbackState) core.CallbackState {
	if l > 0 {
		return core.CallbackState(l - 1)
	}
	return st
}

const batchMetaPrefix = "core/group/"

// cannotSucceed reports whether a batch cannot succeed any more.
func (g *batch) cannotSucceed() bool { return g.Lost > 0 || g.KidsLost > 0 || g.CallbackLost }

// succeeded reports whether everything is done that a parent's Success waits for. Jobs that join the batch later, after it was
// reopened, do not change that.
func (g *batch) succeeded() bool { return g.Success == core.CallbackDone && !g.CallbackLost }

// count adds n times a child batch in its present state.
func (k *childCount) count(child *batch, n int) {
	k.all += n
	if child.Complete != core.CallbackDone {
		k.incomplete += n
	}
	if !child.succeeded() {
		k.unfinished += n
	}
}

// mutate changes a batch and lets its parent count it anew.
func (m *Machine) mutate(g *batch, how func()) {
	parent := m.batches[g.Parent]
	if parent != nil {
		parent.children.count(g, -1)
	}
	how()
	if parent != nil {
		parent.children.count(g, 1)
		parent.changedIn = m.table.Open // clients see the number of its children
	}
	g.changedIn = m.table.Open
	if !g.dirty && m.opts.Persist {
		g.dirty = true
		m.dirtyBatches = append(m.dirtyBatches, g.number)
	}
}

// addBatch enters a batch, new or restored, in the indexes.
func (m *Machine) addBatch(g *batch) {
	if n := len(m.freeBatches); n > 0 {
		g.slot, m.freeBatches = m.freeBatches[n-1], m.freeBatches[:n-1]
		m.batchSlots[g.slot] = g
	} else {
		g.slot = uint32(len(m.batchSlots))
		m.batchSlots = append(m.batchSlots, g)
	}
	m.batches[g.number] = g
	m.groupUntil(g, g.Until)
}

// linkBatch appends the newest batch to the list.
func (m *Machine) linkBatch(g *batch) {
	if g.older = m.lastBatch; g.older != nil {
		g.older.newer = g
	} else {
		m.firstBatch = g
	}
	m.lastBatch = g
}

// forgetBatch removes a batch from all indexes and from the store.
func (m *Machine) forgetBatch(g *batch) {
	m.mutate(g, func() { delete(m.batches, g.number) })
	m.lastBatchRemoval = m.table.Open
	m.table.Timers.Remove(&g.deadline)
	m.batchSlots[g.slot], m.freeBatches = nil, append(m.freeBatches, g.slot)
	if g.older != nil {
		g.older.newer = g.newer
	} else {
		m.firstBatch = g.newer
	}
	if g.newer != nil {
		g.newer.older = g.older
	} else {
		m.lastBatch = g.older
	}
}

// groupUntil sets a batch's deadline, zero for none.
func (m *Machine) groupUntil(g *batch, until core.Instant) {
	m.table.Timers.Remove(&g.deadline)
	if g.Until = until; until != 0 {
		g.deadline = m.table.Timers.Add(until, timer.Owner{Kind: table.TimerBatch, Handle: g.slot})
	}
}

// joinBatch counts a new job in its batch.
func (m *Machine) joinBatch(h uint32) {
	if x := m.table.Optional(h); x != nil && x.Batch != 0 {
		g := m.batches[x.Batch]
		m.mutate(g, func() {
			g.Total++
			g.members++
			g.untried++
		})
	}
}

// executed counts the first failure of a job in its batch.
func (m *Machine) executed(h uint32) {
	x := m.table.Optional(h)
	if x == nil || x.Batch == 0 || x.Tried {
		return
	}
	x.Tried = true
	if g := m.batches[x.Batch]; g != nil {
		g.untried--
		g.failing++
		g.changedIn = m.table.Open
		m.checkBatch(g)
	}
}

// memberGone removes a job from the batch of which it is a member, and from the one whose callback it is; count says how a member
// ended.
func (m *Machine) memberGone(h uint32, success bool, count func(*batch)) {
	x := m.table.Optional(h)
	if x == nil || x.Batch == 0 && x.CallbackFor == 0 {
		return
	}
	g, of := m.batches[x.Batch], m.batches[x.CallbackFor]
	x.Batch, x.CallbackFor = 0, 0
	if of != nil {
		m.callbackEnded(of, m.table.At(h).Seq, success)
	}
	if g == nil {
		return
	}
	m.mutate(g, func() {
		g.members--
		if x.Tried {
			g.failing--
		} else {
			g.untried--
		}
		count(g)
	})
	m.checkBatch(g)
}

// memberDone counts a member that ended.
func (m *Machine) memberDone(h uint32, success bool) {
	m.memberGone(h, success, func(g *batch) {
		if success {
			g.done++
		} else {
			g.Lost++
		}
	})
}

// leaveBatch removes a job that disappears without being done from its batch; the batch continues with the rest.
func (m *Machine) leaveBatch(h uint32) {
	m.memberGone(h, false, func(g *batch) { g.Total-- })
}

// checkBatch releases the callbacks that are due, of a batch and of its ancestors.
func (m *Machine) checkBatch(g *batch) {
	for ; g != nil; g = m.batches[g.Parent] {
		if g.Committed && g.Complete == core.CallbackPending && g.untried == 0 && g.children.incomplete == 0 {
			m.mutate(g, func() { g.Complete = m.callbackDue(g.CompleteJob) })
			m.releaseCallback(g.CompleteJob)
		}
		if g.Committed && g.Success == core.CallbackPending && g.Complete == core.CallbackDone && g.members == 0 &&
			g.children.unfinished == 0 && !g.cannotSucceed() {
			m.mutate(g, func() { g.Success = m.callbackDue(g.SuccessJob) })
			m.releaseCallback(g.SuccessJob)
		}
		over := g.Success == core.CallbackDone || g.cannotSucceed() && g.members == 0 && g.children.all == 0
		if g.Committed && over && g.Complete == core.CallbackDone && g.Until == 0 {
			m.mutate(g, func() { m.groupUntil(g, m.table.Now.Add(retainFinished)) })
		}
	}
}

// batchTimeout ends a batch that was not committed in time, or that finished long enough ago. Remaining members continue as plain
// jobs; callbacks that never ran are removed. A batch that was committed before and reopened is committed again.
func (m *Machine) batchTimeout(slot uint32) {
	g := m.batchSlots[slot]
	g.deadline = 0
	if g.Reopened && !g.Committed {
		m.mutate(g, func() { g.Committed, g.Until = true, 0 })
		m.checkBatch(g)
		return
	}
	m.forgetBatch(g)
	for _, seq := range []uint64{g.CompleteJob, g.SuccessJob} {
		if h := m.table.Handle(seq); seq != 0 && h != 0 && m.table.At(h).State == core.Blocked {
			m.end(h, &core.Outcome{Cause: core.Expired})
		}
	}
	if parent := m.batches[g.Parent]; parent != nil {
		parent.children.count(g, -1)
		if !g.succeeded() {
			m.mutate(parent, func() { parent.KidsLost++ })
		}
		m.checkBatch(parent)
	}
}

func batchMetaName(number uint64) string { return batchMetaPrefix + strconv.FormatUint(number, 10) }

// sealBatches adds the entries of changed batches.
func (m *Machine) sealBatches(into []core.MetaEntry) []core.MetaEntry {
	for _, number := range m.dirtyBatches {
		g := m.batches[number]
		if g == nil {
			into = append(into, core.MetaEntry{Name: batchMetaName(number)})
			continue
		}
		g.dirty = false
		value, err := json.Marshal(g.batchMeta)
		if err != nil {
			panic("machine: a batch cannot be encoded: " + err.Error())
		}
		into = append(into, core.MetaEntry{Name: batchMetaName(number), Value: value})
	}
	m.dirtyBatches = m.dirtyBatches[:0]
	return into
}

// restoreBatch restores a stored batch.
func (m *Machine) restoreBatch(name string, value []byte) error {
	n, err := strconv.ParseUint(name[len(batchMetaPrefix):], 10, 64)
	if err != nil {
		return err
	}
	g := &batch{number: n}
	if err := json.Unmarshal(value, &g.batchMeta); err != nil {
		return err
	}
	m.table.NextSeq = max(m.table.NextSeq, n+1)
	m.addBatch(g)
	return nil
}

// relinkBatches counts what is not stored, once all jobs are restored.
func (m *Machine) relinkBatches() {
	for _, number := range slices.Sorted(maps.Keys(m.batches)) {
		g := m.batches[number]
		m.linkBatch(g)
		g.done = g.Total - g.members - g.Lost
		if parent := m.batches[g.Parent]; parent != nil {
			parent.children.count(g, 1)
		}
	}
}
