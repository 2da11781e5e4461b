package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"broker/core"
)

// Logs of jobs: the model has every accepted line. The broker must show the first and the last of these lines.

// appendLog appends lines to the log of a job.
func (w *world) appendLog() error {
	p := w.anyJob()
	if p == nil {
		return nil
	}
	c := w.workerOf(p)
	lines := make([]string, 1+w.rng.IntN(3))
	if w.rng.IntN(6) == 0 {
		lines = make([]string, w.rng.IntN(400))
	}
	for i := range lines {
		lines[i] = fmt.Sprint("line ", len(p.log)+i+1, " ", strings.Repeat("-", w.rng.IntN(100)))
	}
	op := &core.AppendLog{Tag: w.newTag(), Ref: core.Ref{Seq: p.seq}, Authority: styles[c.kind].authority, Lines: lines}
	before := w.look(p.seq)
	var wrong error
	err := w.do(c, op, op.Tag, func(r core.Reply) {
		if r.Kind != core.Accepted {
			return
		}
		w.note("%d lines for the log of %d, commit %d", len(lines), p.seq, r.Commit)
		if before == nil || !before.State.Unfinished() || before.Unstored || before.Ephemeral {
			wrong = fmt.Errorf("job %d has a log, and was %+v", p.seq, before)
		}
		for _, l := range lines {
			write(&p.log, l, w.commitOf(r, true))
		}
	})
	return cmp.Or(err, wrong)
}

// auditLogs compares the logs in the store with the model.
func (w *world) auditLogs() error {
	if err := w.flush(); err != nil {
		return err
	}
	for _, seq := range w.model.seqs {
		if w.look(seq) == nil {
			continue
		}
		p := w.model.jobs[seq]
		if len(p.log) == 0 {
			continue
		}
		if n, err := w.logIs(p); err != nil || n != len(p.log) {
			return cmp.Or(err, fmt.Errorf("the log of job %d has %d lines of %d", seq, n, len(p.log)))
		}
	}
	return w.logsHaveJobs()
}

// logIs compares the log of a job with the model, and returns how many lines the log has had.
func (w *world) logIs(p *promise) (lines int, err error) {
	chunks, err := core.DecodeLog(w.ask(&core.ReadDocuments{Prefix: core.LogPrefix(p.seq)}).Documents)
	if err != nil {
		return 0, fmt.Errorf("the log of job %d: %w", p.seq, err)
	}
	for _, l := range core.LogLines(chunks, 0) {
		lines += max(1, int(l.Missing))
		if lines > len(p.log) || int(l.Number) != lines || l.Missing == 0 && l.Text != p.log[lines-1].text {
			return 0, fmt.Errorf("line %d of the log of job %d is %+v, of %d lines", lines, p.seq, l, len(p.log))
		}
	}
	return lines, nil
}

// logsHaveJobs checks that each log belongs to a job.
func (w *world) logsHaveJobs() error {
	for _, d := range w.ask(&core.ReadDocuments{Prefix: core.LogsPrefix, Limit: 10_000}).Documents {
		seq := uint64(0)
		if _, err := fmt.Sscanf(d.Name, core.LogsPrefix+"%x/", &seq); err != nil || w.look(seq) == nil {
			return fmt.Errorf("document %q is of no job: %w", d.Name, err)
		}
	}
	return nil
}

// logAfterCrash checks that a log has the lines that were on disk, and updates the model to its recovered lines.
func (w *world) logAfterCrash(p *promise, committed core.Commit) error {
	if len(p.log) == 0 {
		return nil
	}
	n, err := w.logIs(p)
	if err != nil {
		return err
	}
	if n < len(p.log) && p.log[n].made <= committed {
		return fmt.Errorf("line %d of the log of job %d was acknowledged by commit %d of %d and is lost", n+1, p.seq,
			p.log[n].made, committed)
	}
	p.log = slices.Clone(p.log[:n])
	for i := range p.log {
		p.log[i].made = 1
	}
	return nil
}
