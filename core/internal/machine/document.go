package machine

import (
	"encoding/json"
	"fmt"
	"strings"

	"broker/core"
	"broker/core/internal/batch"
	"broker/core/internal/joblog"
	"broker/core/internal/limit"
	"broker/core/internal/policy"
	"broker/core/internal/schedule"
	"broker/core/internal/table"
)

// writeDocuments adds documents to the open batch. Of documents with the same name, the last one counts.
func (m *Machine) writeDocuments(c *client, op *core.WriteDocuments) {
	if m.list.IsChecked() {
		return
	}
	if m.opts.Persist {
		for _, d := range op.Documents {
			m.table.PutDocument(d)
		}
	}
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.table.Promise()})
}

// readDocuments lets the engine answer: the machine keeps no documents.
func (m *Machine) readDocuments(c *client, op *core.ReadDocuments) {
	read := *op
	m.replyWith(c, core.Reply{Kind: core.Answered, Tag: op.Tag, Answer: &core.Answer{}},
		Work{Needs: StoredDocuments, Documents: &read})
}

// ContentOf names the data that a metadata entry of the core belongs to, for people; empty: users would not miss it.
// Users would not miss counters, measurements and names of unused queues.
func ContentOf(name string, value []byte) string {
	switch {
	case strings.HasPrefix(name, queueMetaPrefix):
		var k queueMeta
		if json.Unmarshal(value, &k) == nil && k == (queueMeta{Kept: true}) {
			return ""
		}
		return "settings of queues"
	case IsRules(name), strings.HasPrefix(name, limit.SharedPrefix):
		return "limits of queues"
	case strings.HasPrefix(name, policy.Prefix):
		return "policies of queues and types"
	case strings.HasPrefix(name, schedule.Prefix), strings.HasPrefix(name, schedule.PositionPrefix):
		return "schedules"
	case strings.HasPrefix(name, batch.Prefix):
		return "batches"
	}
	return ""
}

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
	if wanted || m.stopsHere(c, op.Tag, e, err) {
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
