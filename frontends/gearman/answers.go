package gearman

import (
	"errors"

	"broker/core"
)

// encode appends a reply as a packet or text; p is the message that it answers, empty for a push.
func (s *session) encode(b []byte, r *core.Reply, p *pending) []byte {
	switch r.Kind {
	case core.Submitted:
		start := len(b)
		return endPacket(s.front.opts.Handles.Append(beginPacket(b, jobCreated), r.Seq), start)
	case core.Assigned:
		return s.appendAssign(b, r, p.typ)
	case core.NothingReady, core.TimedOut:
		return endPacket(beginPacket(b, noJob), len(b))
	case core.Woken:
		return endPacket(beginPacket(b, noop), len(b))
	case core.Progressed:
		return s.appendProgress(b, r)
	case core.DataSent:
		return s.appendWork(b, workData, r.Seq, r.Data)
	case core.Warned:
		return s.appendWork(b, workWarning, r.Seq, r.Data)
	case core.Ended:
		return s.appendEnd(b, r)
	case core.Inspected:
		if p.typ == getStatusUnique {
			return appendStatusUnique(b, p.arg, r.Info)
		}
		return appendStatus(b, p.arg, r.Info)
	case core.Failed:
		return s.appendFailed(b, r, p)
	case core.Accepted, core.Queues:
		return s.appendLine(b, p)
	case core.Listed, core.Counted, core.MetaReply, core.Purged, core.BatchReply, core.Answered, core.Reading, core.EventReply:
		return b // never requested in the pipeline
	}
	return b
}

// appendWork appends a packet with a handle and data.
func (s *session) appendWork(b []byte, t packetType, seq uint64, data []byte) []byte {
	start := len(b)
	return endPacket(appendField(s.front.opts.Handles.Append(beginPacket(b, t), seq), data), start)
}

// appendAssign appends a job in the form that the type of grab requires.
func (s *session) appendAssign(b []byte, r *core.Reply, grabbed packetType) []byte {
	start, j := len(b), r.Job
	reducer, typ := []byte(nil), jobAssign
	switch grabbed { //nolint:exhaustive // GRAB_JOB keeps the defaults
	case grabJobUniq:
		typ = jobAssignUniq
	case grabJobAll:
		typ = jobAssignUniq
		if reducer = reducerOf(j); len(reducer) > 0 {
			typ = jobAssignAll
		}
	}
	b = appendField(s.front.opts.Handles.Append(beginPacket(b, typ), r.Seq), s.front.functionOf(j.Queue))
	if typ != jobAssign {
		b = appendField(b, uniqueOf(j))
	}
	if typ == jobAssignAll {
		b = appendField(b, reducer)
	}
	return endPacket(appendField(b, j.Body), start)
}

// appendProgress appends the progress as the bytes from a Gearman worker, or as two numbers for a worker of another protocol.
func (s *session) appendProgress(b []byte, r *core.Reply) []byte {
	if r.Progress.Verbatim != nil {
		return s.appendWork(b, workStatus, r.Seq, r.Progress.Verbatim)
	}
	start := len(b)
	b = s.front.opts.Handles.Append(beginPacket(b, workStatus), r.Seq)
	b = appendNumber(b, uint64(r.Progress.Num))
	return endPacket(appendNumber(b, uint64(r.Progress.Den)), start)
}

// appendEnd appends the outcome of a job. The data is the data of the completion packet only: earlier chunks have been sent
// already.
func (s *session) appendEnd(b []byte, r *core.Reply) []byte {
	if r.Outcome.Success {
		return s.appendWork(b, workComplete, r.Seq, r.Data)
	}
	if f := r.Outcome.Failure; s.exceptions && f != nil {
		switch {
		case f.Exception:
			return s.appendWork(b, workException, r.Seq, f.Data)
		case f.Type != "":
			return s.appendWork(b, workException, r.Seq, []byte(f.Type+": "+f.Message))
		}
	}
	start := len(b)
	return endPacket(s.front.opts.Handles.Append(beginPacket(b, workFail), r.Seq), start)
}

// isUnfinished reports whether a job exists for Gearman clients. A finished job does not, even if its outcome is kept.
func isUnfinished(i *core.JobInfo) bool { return i != nil && i.State.Unfinished() }

// appendStatus appends STATUS_RES; i is nil for an unknown job.
func appendStatus(b []byte, handle []byte, i *core.JobInfo) []byte {
	start := len(b)
	b = append(beginPacket(b, statusRes), handle...)
	return endPacket(appendStatusFields(b, i), start)
}

// appendStatusUnique appends STATUS_RES_UNIQUE, which also has the number of waiting clients.
func appendStatusUnique(b []byte, unique []byte, i *core.JobInfo) []byte {
	start := len(b)
	b = append(beginPacket(b, statusResUnique), unique...)
	b = appendStatusFields(b, i)
	watchers := 0
	if isUnfinished(i) {
		watchers = i.Watchers
	}
	return endPacket(appendNumber(b, uint64(watchers)), start)
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
		return appendPacket(b, errorRes, errForbidden.code, errForbidden.message)
	}
	switch p.typ { //nolint:exhaustive // other packets get an ERROR
	case grabJob, grabJobUniq, grabJobAll:
		return endPacket(beginPacket(b, noJob), len(b))
	case getStatus:
		return appendStatus(b, p.arg, nil)
	case getStatusUnique:
		return appendStatusUnique(b, p.arg, nil)
	case preSleep:
		return b
	case textCommand:
		return append(b, lineError(r.Err)...)
	}
	e := packetError(r.Err, p.err)
	return appendPacket(b, errorRes, e.code, e.message)
}
