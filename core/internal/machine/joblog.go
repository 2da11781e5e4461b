package machine

import (
	"fmt"

	"broker/core"
	"broker/core/internal/table"
)

// The log of a job is on disk alone, in documents. Memory has how many of them there are (optional.logChunks), and while the job is leased
// its last chunk, to which lines are appended. After that, or a restart, the next line has the chunk read.

// jobLog is the end of a log.
type jobLog struct {
	last   core.LogChunk
	bytes  int         // of the text of its lines
	commit core.Commit // that has the last line
}

// logFormat is the first format of entries that says which jobs have logs. In an older one, the next leader would begin them anew.
const logFormat = 4

// Why lines are refused.
var (
	errOldFormat = fmt.Errorf("%w: jobs have logs once all nodes of the cluster have said that they know them", core.ErrInvalid)
	errInMemory  = fmt.Errorf("%w: a job that is in memory only has no log", core.ErrInvalid)
	errLogLines  = fmt.Errorf("%w: more than %d lines for a log", core.ErrInvalid, core.MaxLogLines)
)

// appendLog appends lines to the log of a job.
func (m *Machine) appendLog(c *client, op *core.AppendLog) {
	h, e, err := m.authorize(c, op.Ref, &op.If, op.Authority)
	switch {
	case err != nil:
	case e.State != core.Leased:
		err = core.ErrNotLeased // also by anyone: its end is forgotten when a lease ends
	case len(op.Lines) > core.MaxLogLines:
		err = errLogLines
	case e.Unstored(), !m.opts.Persist:
		err = errInMemory
	case m.opts.Format != nil && m.opts.Format() < logFormat:
		err = errOldFormat
	case m.refuse != nil || m.unstored() > m.maxUnstored():
		err = core.ErrDiskFull
	}
	l, wanted, err := m.logOf(c, h, err)
	if wanted || m.rejected(c, op.Tag, e, err) {
		return
	}
	if len(op.Lines) > 0 {
		m.extendLog(h, e, l, op.Lines)
		m.emit(h, e, core.EventLogged, "")
		m.stats.Reports++
	}
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Seq: e.Seq, Commit: m.table.Promise(), CancelRequested: e.Has(table.Stopping)})
}

// extendLog appends lines and writes the chunks that change.
func (m *Machine) extendLog(h uint32, e *table.Entry, l *jobLog, lines []string) {
	m.logs[e.Seq] = l
	for _, text := range lines {
		text = core.CutText(text, core.MaxLogLine)
		if n := len(l.last.Lines); n == core.LogChunkLines || n > 0 && l.bytes+len(text) > core.LogChunkBytes {
			m.writeChunk(h, e, l)
			l.last = core.LogChunk{Number: l.last.Number + 1, First: l.last.First + uint32(n)} //nolint:gosec // few
			l.bytes = 0
		}
		number := l.last.First + uint32(len(l.last.Lines)) //nolint:gosec // few
		l.last.Lines = append(l.last.Lines, core.LogLine{Number: number, At: m.table.Now, Text: text})
		l.bytes += len(text)
	}
	m.writeChunk(h, e, l)
}

// writeChunk puts the last chunk of a log into the open batch. The job's status says how many places there are.
func (m *Machine) writeChunk(h uint32, e *table.Entry, l *jobLog) {
	slot := core.LogSlot(l.last.Number)
	m.table.PutDocument(core.MetaEntry{Name: core.LogChunkName(e.Seq, slot), Value: l.last.Encode()})
	l.commit = m.table.Open
	if x := m.table.EnsureOptional(h); uint32(x.LogChunks) <= slot {
		x.LogChunks = uint8(slot + 1) //nolint:gosec // at most core.LogChunks
		e.Set(table.Changed)
		m.table.Touch(h, e)
	}
}

// logOf is the end of the log of a job, unless lines are refused. Wanted: the operation cannot be processed yet.
func (m *Machine) logOf(c *client, h uint32, against error) (l *jobLog, wanted bool, err error) {
	if against != nil {
		return nil, false, against
	}
	seq := m.table.At(h).Seq
	if l := m.logs[seq]; l != nil {
		return l, false, nil
	}
	x := m.table.Optional(h)
	if x == nil || x.LogChunks == 0 {
		return &jobLog{last: core.LogChunk{First: 1}}, false, nil
	}
	c.startFetching()
	s, have := c.fetching.logs[seq]
	switch {
	case have && s.err != nil:
		return nil, false, fmt.Errorf("%w: %w", core.ErrDamaged, s.err)
	case have && s.log != nil && s.forgotten == m.forgottenLogs:
		return s.log, false, nil
	}
	c.fetching.logs[seq] = suppliedLog{forgotten: m.forgottenLogs}
	c.fetching.wants.Logs = append(c.fetching.wants.Logs, seq)
	return nil, true, nil
}

// suppliedLog is the end of a log as the store has it.
type suppliedLog struct {
	log       *jobLog
	err       error
	forgotten uint64 // Machine.forgottenLogs before it was read: those that were forgotten since may have more lines
}

// SupplyLog supplies the documents of a log, or why they cannot be read.
func (m *Machine) SupplyLog(id core.ClientID, seq uint64, documents []core.MetaEntry, err error) {
	c := m.client(id)
	if c == nil || c.fetching == nil {
		return
	}
	s := c.fetching.logs[seq]
	s.log, s.err = &jobLog{last: core.LogChunk{First: 1}}, err
	if chunks, err := core.DecodeLog(documents); err != nil {
		s.err = err
	} else if len(chunks) > 0 {
		s.log.last = chunks[len(chunks)-1]
		for i := range s.log.last.Lines {
			s.log.bytes += len(s.log.last.Lines[i].Text)
		}
	}
	c.fetching.logs[seq] = s
}

// leaveLog has the end of a log forgotten once it is on disk: the job is not leased any more.
func (m *Machine) leaveLog(e *table.Entry) {
	if m.logs[e.Seq] != nil {
		m.leftLogs = append(m.leftLogs, e.Seq)
	}
}

// forgetLogs forgets the ends of logs that are on disk.
func (m *Machine) forgetLogs() {
	kept := m.leftLogs[:0]
	for _, seq := range m.leftLogs {
		l, h := m.logs[seq], m.table.Handle(seq)
		switch {
		case l == nil || h != 0 && m.table.At(h).State == core.Leased:
		case l.commit <= m.table.Durable:
			delete(m.logs, seq)
			m.forgottenLogs++
		default:
			kept = append(kept, seq)
		}
	}
	if m.leftLogs = kept; len(kept) == 0 {
		m.leftLogs = nil
	}
}

// removeLog removes the log of a job that is removed.
func (m *Machine) removeLog(h uint32, e *table.Entry) {
	x := m.table.Optional(h)
	if x == nil || x.LogChunks == 0 {
		return
	}
	for slot := range x.LogChunks {
		m.table.PutDocument(core.MetaEntry{Name: core.LogChunkName(e.Seq, uint32(slot))})
	}
	delete(m.logs, e.Seq)
}
