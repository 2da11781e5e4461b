package machine

import (
	"encoding/json"
	"strconv"
	"time"

	"broker/core"
	"broker/core/internal/timer"
)

// A group is a batch: jobs that belong together, and up to two callback jobs that are blocked until enough of them are
// executed (Complete) or done (Success). What members do is counted from the members themselves, so that only what
// cannot be counted again after a restart is stored with the batch.

// groupKept is how long a finished batch can still be asked about.
const groupKept = 30 * time.Minute

// group is one batch.
type group struct {
	groupMark
	number   uint64
	members  int // live ones
	done     int
	untried  int // live members never executed
	failing  int // live members that have failed at least once
	kids     int // child batches
	deadline timer.ID
	dirty    bool
}

// groupMark is what is stored of a batch.
type groupMark struct {
	Parent      uint64             `json:"parent,omitempty"`
	Description string             `json:"description,omitempty"`
	CreatedAt   core.Instant       `json:"created_at"`
	Until       core.Instant       `json:"until,omitempty"` // not committed by then, or finished and kept till then
	Total       int                `json:"total"`
	Lost        int                `json:"lost,omitempty"` // gone as failed
	Committed   bool               `json:"committed,omitempty"`
	CompleteJob uint64             `json:"complete_job,omitempty"`
	SuccessJob  uint64             `json:"success_job,omitempty"`
	Complete    core.CallbackState `json:"complete,omitempty"`
	Success     core.CallbackState `json:"success,omitempty"`
}

const groupMarkPrefix = "core/group/"

func (m *Machine) openGroup(c *client, op *core.OpenGroup) {
	parent := m.groups[op.Parent]
	if op.Parent != 0 && parent == nil {
		m.failed(c, op.Tag, core.ErrNoGroup)
		return
	}
	if err := m.closedTo(false); err != nil {
		m.failed(c, op.Tag, err)
		return
	}
	g := &group{number: m.nextSeq}
	m.nextSeq++
	m.reserve()
	g.groupMark = groupMark{Parent: op.Parent, Description: op.Description, CreatedAt: m.now, Until: op.OpenUntil}
	m.groups[g.number] = g
	if parent != nil {
		parent.kids++
	}
	g.CompleteJob = m.admitCallback(op.Complete, g.number)
	g.SuccessJob = m.admitCallback(op.Success, g.number)
	m.groupDeadline(g)
	m.groupChanged(g)
	m.reply(c, core.Reply{Kind: core.Grouped, Tag: op.Tag, Seq: g.number, Commit: m.promise()})
}

// admitCallback takes in a job that is blocked until its batch says go.
func (m *Machine) admitCallback(j *core.Job, number uint64) uint64 {
	if j == nil {
		return 0
	}
	j.CallbackFor, j.CreatedAt = number, m.now
	h := m.admit(j)
	e := m.jobs.at(h)
	m.move(e, core.Blocked)
	e.set(changed)
	m.touch(h, e)
	return e.seq
}

func (m *Machine) groupDeadline(g *group) {
	m.timers.Remove(&g.deadline)
	if g.Until != 0 {
		g.deadline = m.timers.Add(g.Until, timer.Owner{Kind: timerGroup, Handle: uint32(g.number)})
	}
}

func (m *Machine) groupChanged(g *group) {
	if g.dirty || !m.opts.Persist {
		return
	}
	g.dirty = true
	m.dirtyGroups = append(m.dirtyGroups, g.number)
}

// groupRefusal is why a job may not join a batch.
func (m *Machine) groupRefusal(number uint64) error {
	g := m.groups[number]
	switch {
	case g == nil:
		return core.ErrNoGroup
	case g.Committed:
		return core.ErrGroupState
	}
	return nil
}

// joinGroup counts a new job in its batch.
func (m *Machine) joinGroup(h uint32) {
	x := m.rare(h)
	if x == nil || x.group == 0 {
		return
	}
	g := m.groups[x.group]
	g.Total++
	g.members++
	g.untried++
	m.groupChanged(g)
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

// memberDone counts the end of a member, or of a callback.
func (m *Machine) memberDone(h uint32, success bool) {
	x := m.rare(h)
	if x == nil || x.group == 0 && x.callbackFor == 0 {
		return
	}
	if g := m.groups[x.callbackFor]; g != nil {
		m.callbackDone(g, m.jobs.at(h).seq, success)
	}
	g := m.groups[x.group]
	x.group = 0
	if g == nil {
		return
	}
	g.members--
	if x.tried {
		g.failing--
	} else {
		g.untried--
	}
	if success {
		g.done++
	} else {
		g.Lost++
	}
	m.groupChanged(g)
	m.checkGroup(g)
}

// leaveGroup takes a job that vanishes undone out of its batch: the batch goes on with the rest.
func (m *Machine) leaveGroup(h uint32) {
	x := m.rare(h)
	if x == nil || x.group == 0 && x.callbackFor == 0 {
		return
	}
	if g := m.groups[x.callbackFor]; g != nil && x.callbackFor != 0 {
		m.callbackDone(g, m.jobs.at(h).seq, true)
	}
	g := m.groups[x.group]
	x.group, x.callbackFor = 0, 0
	if g == nil {
		return
	}
	g.Total--
	g.members--
	if x.tried {
		g.failing--
	} else {
		g.untried--
	}
	m.groupChanged(g)
	m.checkGroup(g)
}

// callbackDone notes that one of a batch's callbacks has run.
func (m *Machine) callbackDone(g *group, seq uint64, success bool) {
	if !success {
		return // a failing callback goes to its own retries
	}
	switch seq {
	case g.CompleteJob:
		g.Complete, g.CompleteJob = core.CallbackDone, 0
	case g.SuccessJob:
		g.Success, g.SuccessJob = core.CallbackDone, 0
	default:
		return
	}
	m.groupChanged(g)
	m.checkGroup(g)
}

// checkGroup lets the callbacks of a batch go whose time has come, and those of its parent.
func (m *Machine) checkGroup(g *group) {
	if !g.Committed {
		return
	}
	complete, success := m.kidsState(g)
	if g.Complete == core.CallbackPending && g.untried == 0 && complete {
		g.Complete = m.fire(g.CompleteJob)
		m.groupChanged(g)
	}
	if g.Success == core.CallbackPending && g.Complete == core.CallbackDone && g.members == 0 && g.Lost == 0 && success {
		g.Success = m.fire(g.SuccessJob)
		m.groupChanged(g)
	}
	if g.Success == core.CallbackDone && g.Until == 0 || g.Lost > 0 && g.members == 0 && g.Complete == core.CallbackDone && g.Until == 0 {
		g.Until = m.now.Add(groupKept)
		m.groupDeadline(g)
		m.groupChanged(g)
	}
	if parent := m.groups[g.Parent]; parent != nil && g.Parent != 0 {
		m.checkGroup(parent)
	}
}

// kidsState reports whether the callbacks of all child batches have run.
func (m *Machine) kidsState(g *group) (complete, success bool) {
	complete, success = true, true
	if g.kids == 0 {
		return complete, success
	}
	for _, k := range m.groups {
		if k.Parent == g.number {
			complete = complete && k.Complete == core.CallbackDone
			success = success && k.Success == core.CallbackDone
		}
	}
	return complete, success
}

// fire lets a callback job go; a batch without one has it behind itself at once.
func (m *Machine) fire(seq uint64) core.CallbackState {
	h := m.bySeq.get(seq)
	if seq == 0 || h == 0 || m.jobs.at(h).state != core.Blocked {
		return core.CallbackDone
	}
	e := m.jobs.at(h)
	e.readyAt = m.now
	m.touch(h, e)
	m.makeReady(h, e)
	return core.CallbackEnqueued
}

func (m *Machine) commitGroup(c *client, op *core.CommitGroup) {
	g := m.groups[op.Group]
	switch {
	case g == nil:
		m.failed(c, op.Tag, core.ErrNoGroup)
		return
	case op.Reopen && g.Complete != core.CallbackPending && g.Success != core.CallbackPending:
		m.failed(c, op.Tag, core.ErrGroupState)
		return
	}
	g.Committed = !op.Reopen
	g.Until = 0
	m.groupDeadline(g)
	m.groupChanged(g)
	m.checkGroup(g)
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Seq: g.number, Commit: m.promise()})
}

func (m *Machine) inspectGroup(c *client, op *core.InspectGroup) {
	g := m.groups[op.Group]
	if g == nil {
		m.failed(c, op.Tag, core.ErrNoGroup)
		return
	}
	m.reply(c, core.Reply{Kind: core.Grouped, Tag: op.Tag, Seq: g.number, Group: &core.GroupInfo{
		Group: g.number, Parent: g.Parent, Description: g.Description, CreatedAt: g.CreatedAt, Total: g.Total,
		Pending: g.members + g.Lost, Failed: g.failing + g.Lost, Committed: g.Committed,
		Complete: g.Complete, Success: g.Success,
	}})
}

// groupTimeout ends a batch that was not committed in time, or that is finished and has been kept long enough. Members
// that are left go on as plain jobs.
func (m *Machine) groupTimeout(short uint64) {
	var g *group
	for number, x := range m.groups {
		if uint32(number) == uint32(short) && x.deadline != 0 && m.now >= x.Until && x.Until != 0 {
			g = x
		}
	}
	if g == nil {
		return
	}
	g.deadline = 0
	delete(m.groups, g.number)
	if p := m.groups[g.Parent]; p != nil {
		p.kids--
		m.checkGroup(p)
	}
	for _, seq := range []uint64{g.CompleteJob, g.SuccessJob} {
		if h := m.bySeq.get(seq); seq != 0 && h != 0 && m.jobs.at(h).state == core.Blocked {
			m.end(h, &core.Outcome{Cause: core.Expired})
		}
	}
	m.groupChanged(g)
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
