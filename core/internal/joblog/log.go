package joblog

import (
	"fmt"

	"broker/core"
	"broker/core/internal/table"
)

// The log of a job is only on disk, in documents. Their number is in memory (table.Optional.LogChunks), and while the
// job is leased also the last chunk, to which lines are appended. After the lease, or after a restart, the chunk is
// read again for the next line.

// End is the end of a log.
type End struct {
	last   core.LogChunk
	bytes  int         // of the text of its lines
	commit core.Commit // commit with the last line
}

// Logs are the ends of logs. Not safe for concurrent use.
type Logs struct {
	table     *table.Table
	ends      map[uint64]*End // by number of the job
	left      []uint64        // jobs that are no longer leased
	forgotten uint64          // how many ends were forgotten
}

// New returns the logs for a table, which has no jobs yet.
func New(t *table.Table) *Logs { return &Logs{table: t, ends: map[uint64]*End{}} }

// Supplied is the end of a log read from the store; see NewSupplied.
type Supplied struct {
	log       *End
	err       error
	forgotten uint64 // Logs.forgotten before the read: ends that were forgotten since may have more lines
}

// Set sets the documents of a log, or the error of reading them.
func (s *Supplied) Set(documents []core.MetaEntry, err error) {
	s.log, s.err = &End{last: core.LogChunk{First: 1}}, err
	if chunks, err := core.DecodeLog(documents); err != nil {
		s.err = err
	} else if len(chunks) > 0 {
		s.log.last = chunks[len(chunks)-1]
		for i := range s.log.last.Lines {
			s.log.bytes += len(s.log.last.Lines[i].Text)
		}
	}
}

// Known returns the end of the log of a job; nil: it must be read.
func (g *Logs) Known(h uint32) *End {
	if l := g.ends[g.table.At(h).Seq]; l != nil {
		return l
	}
	if x := g.table.Optional(h); x == nil || x.LogChunks == 0 {
		return &End{last: core.LogChunk{First: 1}}
	}
	return nil
}

// Take returns the supplied end of a log; nil: it must be read, or read again.
func (g *Logs) Take(s Supplied) (*End, error) {
	switch {
	case s.err != nil:
		return nil, fmt.Errorf("%w: %w", core.ErrDamaged, s.err)
	case s.log != nil && s.forgotten == g.forgotten:
		return s.log, nil
	}
	return nil, nil
}

// NewSupplied returns a Supplied; the caller reads the documents of the log and passes them to Set.
func (g *Logs) NewSupplied() Supplied { return Supplied{forgotten: g.forgotten} }

// Extend appends lines and writes the chunks that change.
func (g *Logs) Extend(h uint32, e *table.Entry, l *End, lines []string) {
	g.ends[e.Seq] = l
	for _, text := range lines {
		text = core.CutText(text, core.MaxLogLine)
		if n := len(l.last.Lines); n == core.LogChunkLines || n > 0 && l.bytes+len(text) > core.LogChunkBytes {
			g.writeChunk(h, e, l)
			l.last = core.LogChunk{Number: l.last.Number + 1, First: l.last.First + uint32(n)}
			l.bytes = 0
		}
		number := l.last.First + uint32(len(l.last.Lines))
		l.last.Lines = append(l.last.Lines, core.LogLine{Number: number, At: g.table.Now, Text: text})
		l.bytes += len(text)
	}
	g.writeChunk(h, e, l)
}

// writeChunk puts the last chunk of a log into the open batch. The job's status has the number of slots.
func (g *Logs) writeChunk(h uint32, e *table.Entry, l *End) {
	slot := core.LogSlot(l.last.Number)
	g.table.PutDocument(core.MetaEntry{Name: core.LogChunkName(e.Seq, slot), Value: l.last.Encode()})
	l.commit = g.table.Open
	if x := g.table.EnsureOptional(h); uint32(x.LogChunks) <= slot {
		x.LogChunks = uint8(slot + 1)
		e.Set(table.Changed)
		g.table.Touch(h, e)
	}
}

// Leave records that a job is no longer leased: the end of its log is forgotten once it is on disk.
func (g *Logs) Leave(e *table.Entry) {
	if len(g.ends) > 0 && g.ends[e.Seq] != nil {
		g.left = append(g.left, e.Seq)
	}
}

// Committed forgets the ends of logs that are on disk.
func (g *Logs) Committed() {
	if len(g.left) == 0 {
		return
	}
	kept := g.left[:0]
	for _, seq := range g.left {
		l, h := g.ends[seq], g.table.Handle(seq)
		switch {
		case l == nil || h != 0 && g.table.At(h).State == core.Leased:
		case l.commit <= g.table.Durable:
			delete(g.ends, seq)
			g.forgotten++
		default:
			kept = append(kept, seq)
		}
	}
	if g.left = kept; len(kept) == 0 {
		g.left = nil
	}
}

// Remove removes the log of a job that is removed.
func (g *Logs) Remove(h uint32, e *table.Entry) {
	x := g.table.Optional(h)
	if x == nil || x.LogChunks == 0 {
		return
	}
	for slot := range x.LogChunks {
		g.table.PutDocument(core.MetaEntry{Name: core.LogChunkName(e.Seq, uint32(slot))})
	}
	delete(g.ends, e.Seq)
}
