package machine

import (
	"fmt"

	"broker/core"
	"broker/core/internal/table"
)

// errNotEnded refuses to resubmit a job that has not ended.
var errNotEnded = fmt.Errorf("%w: the job has not ended", core.ErrInvalid)

// resubmit submits a copy of a job that has ended.
func (m *Machine) resubmit(c *client, op *core.Resubmit) {
	h, e, err := m.findIf(op.Ref, &op.If)
	if err == nil && e.State != core.Done {
		err = errNotEnded
	}
	j, wanted, err := m.wholeJob(c, h, err)
	if wanted || m.rejected(c, op.Tag, e, err) {
		return
	}
	m.submit(c, &core.Submit{Tag: op.Tag, Job: m.copyOf(e, j)})
}

// copyOf returns a copy of a job for a new submission.
func (m *Machine) copyOf(e *table.Entry, old *core.Job) *core.Job {
	j := *old
	j.ID, j.Seq, j.RerunOf = "", 0, old.Seq
	j.Queue, j.Type = m.queues[e.Queue].Name, m.table.TypeOf(e)
	j.CreatedAt, j.ReadyAt, j.PriorFails, j.Failure = 0, 0, 0, nil
	j.Parent, j.After, j.Batch, j.OnBroken = 0, nil, 0, core.BrokenWaits
	j.Schedule, j.CallbackFor = "", 0
	for _, at := range []*core.Instant{&j.ExpiresAt, &j.StartBefore, &j.UniqueUntil, &j.RetainUntil} {
		if *at != 0 {
			*at = m.table.Now.Add(max(at.Sub(old.CreatedAt), 1))
		}
	}
	return &j
}
