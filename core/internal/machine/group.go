package machine

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"broker/core"
	"broker/core/internal/timer"
)

// A group is a batch: jobs that belong together, and up to two callback jobs that are blocked until enough of them are
// executed (Complete) or done (Success). What members and child batches do is counted from themselves, so that only what
// cannot be counted again after a restart is stored with the batch.
//
//	open ─ CommitGroup ─▶ every member executed, Complete of all children done ─▶ Complete runs
//	  ▲                    all members done, Success of all children done ─▶ Success runs ─▶ kept for groupKept
//	  └── Reopen ──┘

const (
	groupKept = 30 * time.Minute // a finished batch can still be asked about
	groupOpen = 30 * time.Minute // a batch that was opened again is committed again, if nobody does it
)

// group is one batch.
type group struct {
	groupMark
	number   uint64
	slot     uint32 // in groupSlots: what its deadline names
	members  int    // live ones
	done     int
	untried  int // live members never executed
	failing  int // live members that have failed at least once
	kids     kidCount
	deadline timer.ID
	dirty    bool
	// The list of all batches, in the order of their numbers.
	older, newer *group
}

// kidCount counts child batches.
type kidCount struct {
	all        int
	incomplete int // their Complete is not done
	unfinished int // their Success is not done
}

// groupMark is what is stored of a batch.
type groupMark struct {
	Parent       uint64             `json:"parent,omitempty"`
	Description  string             `json:"description,omitempty"`
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

// lostCallback tells how far a callback was that is gone without being done: one more than its state, zero if it is not
// lost. The batch goes on as if it were done.
type lostCallback uint8

// shown is what clients are told of a callback in state st.
func (l lostCallback) shown(st core.CallbackState) core.CallbackState {
	if l > 0 {
		return core.CallbackState(l - 1)
	}
	return st
}

const groupMarkPrefix = "core/group/"

// hopeless reports whether a batch cannot succeed any more.
func (g *group) hopeless() bool { return g.Lost > 0 || g.KidsLost > 0 || g.CallbackLost }

// succeeded reports whether all is done that a parent's Success waits for. What joins the batch afterwards, if it is
// opened again, changes nothing about that.
func (g *group) succeeded() bool { return g.Success == core.CallbackDone && !g.CallbackLost }

// count adds n times a child batch in its present state.
func (k *kidCount) count(child *group, n int) {
	k.all += n
	if child.Complete != core.CallbackDone {
		k.incomplete += n
	}
	if !child.succeeded() {
		k.unfinished += n
	}
}

// alter changes a batch and lets its parent count it anew.
func (m *Machine) alter(g *group, how func()) {
	parent := m.groups[g.Parent]
	if parent != nil {
		parent.kids.count(g, -1)
	}
	how()
	if parent != nil {
		parent.kids.count(g, 1)
	}
	if !g.dirty && m.opts.Persist {
		g.dirty = true
		m.dirtyGroups = append(m.dirtyGroups, g.number)
	}
}

// addGroup enters a batch, new or restored, in the indexes.
func (m *Machine) addGroup(g *group) {
	if n := len(m.freeGroups); n > 0 {
		g.slot, m.freeGroups = m.freeGroups[n-1], m.freeGroups[:n-1]
		m.groupSlots[g.slot] = g
	} else {
		g.slot = uint32(len(m.groupSlots))
		m.groupSlots = append(m.groupSlots, g)
	}
	m.groups[g.number] = g
	m.groupUntil(g, g.Until)
}

// listGroup puts the newest batch at the end of the list.
func (m *Machine) listGroup(g *group) {
	if g.older = m.lastGroup; g.older != nil {
		g.older.newer = g
	} else {
		m.firstGroup = g
	}
	m.lastGroup = g
}

// forgetGroup takes a batch out of all indexes and out of the store.
func (m *Machine) forgetGroup(g *group) {
	m.alter(g, func() { delete(m.groups, g.number) })
	m.timers.Remove(&g.deadline)
	m.groupSlots[g.slot], m.freeGroups = nil, append(m.freeGroups, g.slot)
	if g.older != nil {
		g.older.newer = g.newer
	} else {
		m.firstGroup = g.newer
	}
	if g.newer != nil {
		g.newer.older = g.older
	} else {
		m.lastGroup = g.older
	}
}

// groupUntil sets a batch's deadline, zero for none.
func (m *Machine) groupUntil(g *group, until core.Instant) {
	m.timers.Remove(&g.deadline)
	if g.Until = until; until != 0 {
		g.deadline = m.timers.Add(until, timer.Owner{Kind: timerGroup, Handle: g.slot})
	}
}

// joinGroup counts a new job in its batch.
func (m *Machine) joinGroup(h uint32) {
	if x := m.rare(h); x != nil && x.group != 0 {
		g := m.groups[x.group]
		m.alter(g, func() {
			g.Total++
			g.members++
			g.untried++
		})
	}
}

// executed counts the first failure of a job in its batch.
func (m *Machine) executed(h uint32) {
	x := m.rare(h)
	if x == nil || x.group == 0 || x.tried {
		return
	}
	x.tried = true
	if g := m.groups[x.group]; g != nil {
		g.untried--
		g.failing++
		m.checkGroup(g)
	}
}

// memberGone takes a job out of the batch it is a member of, and out of the one whose callback it is; count says what
// has become of a member.
func (m *Machine) memberGone(h uint32, success bool, count func(*group)) {
	x := m.rare(h)
	if x == nil || x.group == 0 && x.callbackFor == 0 {
		return
	}
	g, of := m.groups[x.group], m.groups[x.callbackFor]
	x.group, x.callbackFor = 0, 0
	if of != nil {
		m.callbackOver(of, m.jobs.at(h).seq, success)
	}
	if g == nil {
		return
	}
	m.alter(g, func() {
		g.members--
		if x.tried {
			g.failing--
		} else {
			g.untried--
		}
		count(g)
	})
	m.checkGroup(g)
}

// memberDone counts a member that was executed to its end.
func (m *Machine) memberDone(h uint32, success bool) {
	m.memberGone(h, success, func(g *group) {
		if success {
			g.done++
		} else {
			g.Lost++
		}
	})
}

// leaveGroup takes a job that vanishes undone out of its batch: the batch goes on with the rest.
func (m *Machine) leaveGroup(h uint32) {
	m.memberGone(h, false, func(g *group) { g.Total-- })
}

// checkGroup lets the callbacks of a batch go whose time has come, and those of its ancestors.
func (m *Machine) checkGroup(g *group) {
	for ; g != nil; g = m.groups[g.Parent] {
		if g.Committed && g.Complete == core.CallbackPending && g.untried == 0 && g.kids.incomplete == 0 {
			m.alter(g, func() { g.Complete = m.callbackDue(g.CompleteJob) })
			m.fire(g.CompleteJob)
		}
		if g.Committed && g.Success == core.CallbackPending && g.Complete == core.CallbackDone && g.members == 0 &&
			g.kids.unfinished == 0 && !g.hopeless() {
			m.alter(g, func() { g.Success = m.callbackDue(g.SuccessJob) })
			m.fire(g.SuccessJob)
		}
		over := g.Success == core.CallbackDone || g.hopeless() && g.members == 0 && g.kids.all == 0
		if g.Committed && over && g.Complete == core.CallbackDone && g.Until == 0 {
			m.alter(g, func() { m.groupUntil(g, m.now.Add(groupKept)) })
		}
	}
}

// groupTimeout ends a batch that was not committed in time, or that is finished and has been kept long enough: members
// and callbacks that are left go on as plain jobs, or not at all if they never ran. One that was committed before and
// opened again is committed again.
func (m *Machine) groupTimeout(slot uint32) {
	g := m.groupSlots[slot]
	g.deadline = 0
	if g.Reopened && !g.Committed {
		m.alter(g, func() { g.Committed, g.Until = true, 0 })
		m.checkGroup(g)
		return
	}
	m.forgetGroup(g)
	for _, seq := range []uint64{g.CompleteJob, g.SuccessJob} {
		if h := m.bySeq.get(seq); seq != 0 && h != 0 && m.jobs.at(h).state == core.Blocked {
			m.end(h, &core.Outcome{Cause: core.Expired})
		}
	}
	if parent := m.groups[g.Parent]; parent != nil {
		parent.kids.count(g, -1)
		if !g.succeeded() {
			m.alter(parent, func() { parent.KidsLost++ })
		}
		m.checkGroup(parent)
	}
}

func groupMarkName(number uint64) string { return groupMarkPrefix + strconv.FormatUint(number, 10) }

// sealGroups writes the marks of batches that have changed.
func (m *Machine) sealGroups(into []core.Mark) []core.Mark {
	for _, number := range m.dirtyGroups {
		g := m.groups[number]
		if g == nil {
			into = append(into, core.Mark{Name: groupMarkName(number)})
			continue
		}
		g.dirty = false
		value, err := json.Marshal(g.groupMark)
		if err != nil {
			panic("machine: a batch cannot be encoded: " + err.Error())
		}
		into = append(into, core.Mark{Name: groupMarkName(number), Value: value})
	}
	m.dirtyGroups = m.dirtyGroups[:0]
	return into
}

// restoreGroup takes back a stored batch.
func (m *Machine) restoreGroup(name string, value []byte) error {
	n, err := strconv.ParseUint(name[len(groupMarkPrefix):], 10, 64)
	if err != nil {
		return err
	}
	g := &group{number: n}
	if err := json.Unmarshal(value, &g.groupMark); err != nil {
		return err
	}
	m.nextSeq = max(m.nextSeq, n+1)
	m.addGroup(g)
	return nil
}

// relinkGroups counts what is not stored, once all jobs are back.
func (m *Machine) relinkGroups() {
	for _, number := range slices.Sorted(maps.Keys(m.groups)) {
		g := m.groups[number]
		m.listGroup(g)
		g.done = g.Total - g.members - g.Lost
		if parent := m.groups[g.Parent]; parent != nil {
			parent.kids.count(g, 1)
		}
	}
}
