package machine

import (
	"errors"

	"broker/core"
	"broker/core/crontab"
)

// schedulesHost is the machine as schedules see it.
type schedulesHost struct{ m *Machine }

// Valid implements schedule.Host.
func (x schedulesHost) Valid(j *core.Job) bool {
	return (&core.Submit{Job: j}).IsValid(x.m.table.NextSeq)
}

// Submit implements schedule.Host.
func (x schedulesHost) Submit(j *core.Job) (seq uint64, joined bool, err error) {
	m := x.m
	a := m.admission(&core.Submit{Job: j})
	switch {
	case a.err != nil:
		return 0, false, a.err
	case a.joins != 0:
		e := m.table.At(a.joins)
		m.makeDurable(a.joins, e)
		return e.Seq, true, nil
	}
	j.Seq = 0
	h, e := m.admitSubmission(a, j, core.Internal)
	m.admitted(h, e)
	m.place(h, e)
	return j.Seq, false, nil
}

// putSchedule is PutSchedule.
func (m *Machine) putSchedule(c *client, op *core.PutSchedule) {
	err := m.schedules.Refusal(op)
	var times crontab.Schedule
	if err == nil {
		var wanted bool
		if times, wanted, err = m.timesOf(c, &op.Schedule); wanted {
			return
		}
	}
	if err != nil {
		m.refusedAt(c, op.Tag, err, m.table.MetaCommit())
		return
	}
	answer := &core.Answer{Schedules: []core.Schedule{m.schedules.Put(&op.Schedule, times)}}
	m.reply(c, core.Reply{Kind: core.Answered, Tag: op.Tag, Commit: m.table.MetaCommit(), Answer: answer})
}

// pauseSchedule is PauseSchedule.
func (m *Machine) pauseSchedule(c *client, op *core.PauseSchedule) {
	err := m.schedules.Pause(op)
	m.settingChanged(c, op.Tag, m.table.MetaCommit(), err)
}

// removeSchedule is RemoveSchedule.
func (m *Machine) removeSchedule(c *client, op *core.RemoveSchedule) {
	err := m.schedules.Remove(op)
	m.settingChanged(c, op.Tag, m.table.Promise(), err)
}

// listSchedules is ListSchedules.
func (m *Machine) listSchedules(c *client, op *core.ListSchedules) {
	m.reply(c, core.Reply{
		Kind: core.Answered, Tag: op.Tag, Commit: m.table.MetaCommit(),
		Answer: &core.Answer{Schedules: m.schedules.List(op)},
	})
}

// runSchedule is RunSchedule.
func (m *Machine) runSchedule(c *client, op *core.RunSchedule) {
	jobs, last, err := m.schedules.Run(op)
	switch {
	case errors.Is(err, core.ErrNoSchedule):
		m.refusedAt(c, op.Tag, err, m.table.MetaCommit())
	case err != nil:
		m.refusedAt(c, op.Tag, err, m.newest())
	default:
		m.reply(c, core.Reply{Kind: core.Submitted, Tag: op.Tag, Seq: last, N: jobs, Commit: m.table.MetaCommit()})
	}
}

// scheduleDue runs a schedule whose deadline has come.
func (m *Machine) scheduleDue(slot uint32) {
	if m.stopped != nil { // changes are not stored any more
		m.schedules.Skip(slot)
		return
	}
	m.schedules.Due(slot)
}

// ScheduleRuns takes the reports of runs since the last call.
func (m *Machine) ScheduleRuns() []core.ScheduleRun { return m.schedules.Reports() }
