package gearman

import (
	"errors"

	"broker/core"
	"broker/frontends/gearman/packet"
)

// encode appends a reply as a packet or text; p is the message that it answers, empty for a push.
func (s *session) encode(b []byte, r *core.Reply, p *pending) []byte {
	switch r.Kind {
	case core.Submitted:
		start := len(b)
		return packet.End(s.front.opts.Handles.Append(packet.BeginAnswer(b, packet.JobCreated), r.Seq), start)
	case core.Assigned:
		return s.appendAssign(b, r, p.typ)
	case core.NothingReady, core.TimedOut:
		return packet.End(packet.BeginAnswer(b, packet.NoJob), len(b))
	case core.Woken:
		return packet.End(packet.BeginAnswer(b, packet.Noop), len(b))
	case core.Progressed:
		return s.appendProgress(b, r)
	case core.DataSent:
		return s.appendWork(b, packet.WorkData, r.Seq, r.Data)
	case core.Warned:
		return s.appendWork(b, packet.WorkWarning, r.Seq, r.Data)
	case core.Ended:
		return s.appendEnd(b, r)
	case core.Inspected:
		if p.typ == packet.GetStatusUnique {
			return appendStatusUnique(b, p.arg, r.Info)
		}
		return appendStatus(b, p.arg, r.Info)
	case core.Failed:
		return s.appendFailed(b, r, p)
	case core.Accepted, core.Queues:
		return s.appendLine(b, p)
	case core.Listed, core.Counted, core.MetaReply, core.Purged, core.BatchReply, core.Answered, core.Reading,
		core.EventReply:
		return b // never requested in the pipeline
	}
	return b
}

// appendWork appends a packet with a handle and data.
func (s *session) appendWork(b []byte, t packet.Type, seq uint64, data []byte) []byte {
	start := len(b)
	return packet.End(appendField(s.front.opts.Handles.Append(packet.BeginAnswer(b, t), seq), data), start)
}

// appendAssign appends a job in the form that the type of grab requires.
func (s *session) appendAssign(b []byte, r *core.Reply, grabbed packet.Type) []byte {
	start, j := len(b), r.Job
	reducer, typ := []byte(nil), packet.JobAssign
	switch grabbed { //nolint:exhaustive // GRAB_JOB keeps the defaults
	case packet.GrabJobUniq:
		typ = packet.JobAssignUniq
	case packet.GrabJobAll:
		typ = packet.JobAssignUniq
		if reducer = reducerOf(j); len(reducer) > 0 {
			typ = packet.JobAssignAll
		}
	}
	b = appendField(s.front.opts.Handles.Append(packet.BeginAnswer(b, typ), r.Seq), s.front.functionOf(j.Queue))
	if typ != packet.JobAssign {
		b = appendField(b, uniqueOf(j))
	}
	if typ == packet.JobAssignAll {
		b = appendField(b, reducer)
	}
	return packet.End(appendField(b, j.Body), start)
}

// appendProgress appends the progress as the bytes from a Gearman worker, or as two numbers for a worker of another
// protocol.
func (s *session) appendProgress(b []byte, r *core.Reply) []byte {
	if r.Progress.Verbatim != nil {
		return s.appendWork(b, packet.WorkStatus, r.Seq, r.Progress.Verbatim)
	}
	start := len(b)
	b = s.front.opts.Handles.Append(packet.BeginAnswer(b, packet.WorkStatus), r.Seq)
	b = appendNumber(b, uint64(r.Progress.Num))
	return packet.End(appendNumber(b, uint64(r.Progress.Den)), start)
}

// appendEnd appends the outcome of a job. The data is the data of the completion packet only: earlier chunks have been
// sent already.
func (s *session) appendEnd(b []byte, r *core.Reply) []byte {
	if r.Outcome.Success {
		return s.appendWork(b, packet.WorkComplete, r.Seq, r.Data)
	}
	if f := r.Outcome.Failure; s.exceptions && f != nil {
		switch {
		case f.Exception:
			return s.appendWork(b, packet.WorkException, r.Seq, f.Data)
		case f.Type != "":
			return s.appendWork(b, packet.WorkException, r.Seq, []byte(f.Type+": "+f.Message))
		}
	}
	start := len(b)
	return packet.End(s.front.opts.Handles.Append(packet.BeginAnswer(b, packet.WorkFail), r.Seq), start)
}

// isUnfinished reports whether a job exists for Gearman clients. A finished job does not, even if its outcome is kept.
func isUnfinished(i *core.JobInfo) bool { return i != nil && i.State.Unfinished() }

// appendStatus appends STATUS_RES; i is nil for an unknown job.
func appendStatus(b []byte, handle []byte, i *core.JobInfo) []byte {
	start := len(b)
	b = append(packet.BeginAnswer(b, packet.StatusRes), handle...)
	return packet.End(appendStatusFields(b, i), start)
}

// appendStatusUnique appends STATUS_RES_UNIQUE, which also has the number of waiting clients.
func appendStatusUnique(b []byte, unique []byte, i *core.JobInfo) []byte {
	start := len(b)
	b = append(packet.BeginAnswer(b, packet.StatusResUnique), unique...)
	b = appendStatusFields(b, i)
	watchers := 0
	if isUnfinished(i) {
		watchers = i.Watchers
	}
	return packet.End(appendNumber(b, uint64(watchers)), start)
}

// appendStatusFields appends known, running, numerator and denominator.
func appendStatusFields(b []byte, i *core.JobInfo) []byte {
	if !isUnfinished(i) {
		return append(b, "\x000\x000\x000\x000"...)
	}
	b = append(b, "\x001\x00"...)
	if i.State == core.Leased {
		b = append(b, '1')
	} else {
		b = append(b, '0')
	}
	b = appendNumber(b, uint64(i.Progress.Num))
	return appendNumber(b, uint64(i.Progress.Den))
}

// appendFailed appends an error in the form that the message requires.
func (s *session) appendFailed(b []byte, r *core.Reply, p *pending) []byte {
	if errors.Is(r.Err, core.ErrForbidden) && p.typ != textCommand {
		return appendPacket(b, packet.Error, errForbidden.code, errForbidden.message)
	}
	switch p.typ { //nolint:exhaustive // other packets get an ERROR
	case packet.GrabJob, packet.GrabJobUniq, packet.GrabJobAll:
		return packet.End(packet.BeginAnswer(b, packet.NoJob), len(b))
	case packet.GetStatus:
		return appendStatus(b, p.arg, nil)
	case packet.GetStatusUnique:
		return appendStatusUnique(b, p.arg, nil)
	case packet.PreSleep:
		return b
	case textCommand:
		return append(b, lineError(r.Err)...)
	}
	e := packetError(r.Err, p.err)
	return appendPacket(b, packet.Error, e.code, e.message)
}
