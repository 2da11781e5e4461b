package machine

import (
	"fmt"

	"broker/core"
	"broker/core/internal/joblog"
	"broker/core/internal/table"
)

// Reasons to refuse lines.
var (
	errInMemory = fmt.Errorf("%w: a job that is in memory only has no log", core.ErrInvalid)
	errLogLines = fmt.Errorf("%w: more than %d lines for a log", core.ErrInvalid, core.MaxLogLines)
)

// appendLog appends lines to the log of a job.
func (m *Machine) appendLog(c *client, op *core.AppendLog) {
	h, e, err := m.authorize(c, op.Ref, &op.If, op.Authority)
	switch {
	case err != nil:
	case e.State != core.Leased:
		err = core.ErrNotLeased // also with ByAnyone: the end of the log is forgotten when a lease ends
	case len(op.Lines) > core.MaxLogLines:
		err = errLogLines
	case e.Unstored(), !m.opts.Persist:
		err = errInMemory
	case m.lacksRoom():
		err = core.ErrDiskFull
	}
	l, wanted, err := m.logOf(c, h, err)
	if wanted || m.rejected(c, op.Tag, e, err) {
		return
	}
	if len(op.Lines) > 0 {
		m.logs.Extend(h, e, l, op.Lines)
		m.emit(h, e, core.EventLogged, "")
		m.stats.Reports++
	}
	m.reply(c, core.Reply{
		Kind: core.Accepted, Tag: op.Tag, Seq: e.Seq, Commit: m.table.Promise(), CancelRequested: e.Has(table.Stopping),
	})
}

// logOf returns the end of the log of a job, unless lines are refused. wanted: the operation has to wait for data.
func (m *Machine) logOf(c *client, h uint32, against error) (l *joblog.End, wanted bool, err error) {
	if against != nil {
		return nil, false, against
	}
	if l := m.logs.Known(h); l != nil {
		return l, false, nil
	}
	c.startFetching()
	seq := m.table.At(h).Seq
	if l, err = m.logs.Take(c.fetching.logs[seq]); l != nil || err != nil {
		return l, false, err
	}
	c.fetching.logs[seq] = m.logs.NewSupplied()
	c.fetching.wants.Logs = append(c.fetching.wants.Logs, seq)
	return nil, true, nil
}

// SupplyLog supplies the documents of a log, or the error of reading them.
func (m *Machine) SupplyLog(id core.ClientID, seq uint64, documents []core.MetaEntry, err error) {
	c := m.client(id)
	if c == nil || c.fetching == nil {
		return
	}
	s := c.fetching.logs[seq]
	s.Set(documents, err)
	c.fetching.logs[seq] = s
}
