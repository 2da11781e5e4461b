package gearman

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"broker/access"
	"broker/core"
	"broker/frontends/gearman/packet"
)

// submission holds the fields of a job that a client submits.
type submission struct {
	submitKind
	function, unique, workload []byte
	reducer                    []byte
	readyAt                    core.Instant
}

func (s *session) submitNow(m *message) {
	s.submit(submission{
		submitKind: submitKinds[m.typ], function: m.args[0], unique: m.args[1], workload: m.args[2],
	})
}

func (s *session) submitEpoch(m *message) {
	at, ok := parseEpoch(m.args[2])
	if !ok {
		s.refuse(&errTime)
		return
	}
	s.submit(submission{
		submitKind: submitKinds[m.typ], function: m.args[0], unique: m.args[1], workload: m.args[3], readyAt: at,
	})
}

func (s *session) submitSched(m *message) {
	c, ok := parseSchedule(m.args[2], m.args[3], m.args[4], m.args[5], m.args[6])
	if !ok {
		s.refuse(&errTime)
		return
	}
	at, ok := c.next(s.front.broker.Now().Time().In(s.front.opts.Location))
	if !ok {
		s.refuse(&errTime)
		return
	}
	s.submit(submission{
		submitKind: submitKinds[m.typ], function: m.args[0], unique: m.args[1], workload: m.args[7],
		readyAt: core.InstantOf(at),
	})
}

func (s *session) submitReduce(m *message) {
	s.submit(submission{
		submitKind: submitKinds[m.typ], function: m.args[0], unique: m.args[1], reducer: m.args[2],
		workload: m.args[4],
	})
}

// submit submits a job.
func (s *session) submit(sub submission) {
	s.noJobDelay.submitted = true
	if len(sub.unique) > maxUniqueBytes {
		s.refuse(&errUniqueSize)
		return
	}
	n := s.names.of(sub.function, &s.front.opts)
	if !n.valid() {
		s.refuse(&errNameSize)
		return
	}
	op := s.Pipeline.Submits.Next()
	op.Job = s.front.newJob(n, &sub, &s.Pipeline.scratch)
	if !sub.background {
		op.Watch = core.WatchStream
	}
	op.Tag = s.expect(pending{})
	s.ask(op)
}

// newJob makes the job of a submission. The job owns copies of the fields; scratch is memory for the unique key.
func (f *Frontend) newJob(n *name, sub *submission, scratch *[]byte) *core.Job {
	j := &core.Job{
		Queue:       n.target,
		Type:        n.typ,
		Body:        bytes.Clone(sub.workload),
		Origin:      core.Gearman,
		Priority:    sub.priority,
		ReadyAt:     sub.readyAt,
		MaxAttempts: f.opts.JobRetries,
		MaxFails:    1,
		Exhausted:   core.ExhaustedFinish,
		LeaseEnd:    core.LeaseEndAttempt,
		Ephemeral:   !sub.background,
	}
	if len(sub.reducer) > 0 {
		j.Attributes = addAttribute(j.Attributes, attrReducer, sub.reducer)
	}
	if len(sub.unique) == 0 {
		return j
	}
	key := appendKey((*scratch)[:0], n, sub.unique, sub.workload)
	*scratch = key
	if len(key) == 0 {
		j.Attributes = addAttribute(j.Attributes, attrUnique, sub.unique)
		return j
	}
	j.Unique, j.UniqueKey = core.UniqueCoalesce, string(key)
	return j
}

// canDo handles CAN_DO and CAN_DO_TIMEOUT.
func (s *session) canDo(m *message) {
	function, op := m.args[0], &core.Register{}
	if m.typ == packet.CanDoTimeout {
		op.LeaseFor = parseTimeout(cutNUL(m.args[1]))
	}
	n := s.names.of(cutNUL(function), &s.front.opts)
	if !n.valid() {
		s.refuse(&errNameSize)
		return
	}
	if !s.AllowedFor(access.Consume, n.queue) {
		s.refuse(&errForbidden)
		return
	}
	s.usesFunctions()
	if !s.front.workers.register(s.entry, n.function) {
		s.refuse(&errFunctions)
		return
	}
	op.Queue = n.queue
	s.ask(op)
}

func (s *session) cantDo(m *message) {
	n := s.names.of(cutNUL(m.args[0]), &s.front.opts)
	if n.tooLong { // so it was never registered
		return
	}
	s.usesFunctions()
	s.front.workers.unregister(s.entry, n.function)
	s.ask(&core.Unregister{Queue: n.queue})
}

func (s *session) resetAbilities(*message) {
	s.front.workers.reset(s.entry)
	s.ask(&core.Unregister{All: true})
}

func (s *session) preSleep(m *message) {
	s.usesFunctions()
	op := s.Pipeline.Sleeps.Next()
	op.Tag = s.expect(pending{typ: m.typ})
	s.ask(op)
}

// grab handles the three forms of GRAB_JOB, which differ in their answers.
func (s *session) grab(m *message) {
	s.usesFunctions()
	op := s.Pipeline.Leases.Next()
	op.Pick, op.Holder = core.PickByPriority, core.HeldByConn
	op.Tag = s.expect(pending{typ: m.typ})
	s.noJobDelay.noteGrab()
	s.ask(op)
}

// job parses the handle in a packet of a worker. If it is not a handle, the packet is refused.
func (s *session) job(typ packet.Type, handle []byte) (ref core.Ref, tag uint64, ok bool) {
	seq, ok := s.front.opts.Handles.Parse(handle)
	if !ok {
		s.refuse(noSuchJob(typ))
		return core.Ref{}, 0, false
	}
	return core.Ref{Seq: seq}, s.expect(pending{typ: typ, err: noSuchJob(typ)}), true
}

func (s *session) workComplete(m *message) {
	ref, tag, ok := s.job(m.typ, m.args[0])
	if !ok {
		return
	}
	op := s.Pipeline.Completes.Next()
	op.Tag, op.Ref, op.Result = tag, ref, bytes.Clone(m.args[1])
	s.ask(op)
}

func (s *session) workFail(m *message) {
	ref, tag, ok := s.job(m.typ, cutNUL(m.args[0]))
	if !ok {
		return
	}
	s.fail(tag, ref, &core.Failure{})
}

func (s *session) workException(m *message) {
	ref, tag, ok := s.job(m.typ, m.args[0])
	if !ok {
		return
	}
	s.fail(tag, ref, &core.Failure{
		Type: "WORK_EXCEPTION", Message: messageOf(m.args[1]), Exception: true, Data: bytes.Clone(m.args[1]),
	})
}

func (s *session) fail(tag uint64, ref core.Ref, failure *core.Failure) {
	op := s.Pipeline.Fails.Next()
	op.Tag, op.Ref, op.Failure = tag, ref, failure
	s.ask(op)
}

// failOversized fails a job whose result is too large, if this worker holds it. If the job were released instead, the
// next worker would send the same result and lose its connection too.
func (s *session) failOversized(m *message) {
	seq, ok := s.front.opts.Handles.Parse(m.args[0])
	if !ok {
		return
	}
	s.fail(s.expect(pending{kind: noAnswer}), core.Ref{Seq: seq}, &core.Failure{
		Type: "ResultTooLarge",
		Message: m.typ.Layout().Name + " has more than the " + strconv.Itoa(s.front.opts.MaxBodyBytes) +
			" bytes that are allowed",
	})
}

func (s *session) workStatus(m *message) {
	if len(m.args[1])+len(m.args[2]) > maxProgressBytes {
		s.refuse(&errProgressSize)
		return
	}
	ref, tag, ok := s.job(m.typ, m.args[0])
	if !ok {
		return
	}
	op := s.Pipeline.Reports.Next()
	op.Tag, op.Ref = tag, ref
	op.Progress = core.Progress{
		Num:      leadingNumber(m.args[1]),
		Den:      leadingNumber(m.args[2]),
		Verbatim: bytes.Join(m.args[1:3], []byte{0}),
	}
	s.ask(op)
}

// workData handles WORK_DATA and WORK_WARNING.
func (s *session) workData(m *message) {
	ref, tag, ok := s.job(m.typ, m.args[0])
	if !ok {
		return
	}
	op := s.Pipeline.Sends.Next()
	op.Tag, op.Ref, op.Warning, op.Data = tag, ref, m.typ == packet.WorkWarning, bytes.Clone(m.args[1])
	s.ask(op)
}

func (s *session) getStatus(m *message) {
	handle := cutNUL(m.args[0])
	seq, ok := s.front.opts.Handles.Parse(handle)
	if !ok {
		s.Pipeline.Local(pending{kind: unknownStatusAnswer, arg: handle})
		return
	}
	op := s.Pipeline.Inspects.Next()
	op.Tag = s.expect(pending{typ: m.typ, arg: handle})
	op.Ref, op.Brief = core.Ref{Seq: seq}, true
	s.ask(op)
}

func (s *session) getStatusUnique(m *message) {
	unique := cutNUL(m.args[0])
	op := s.Pipeline.Inspects.Next()
	op.Tag = s.expect(pending{typ: m.typ, arg: unique})
	op.ByUnique, op.UniqueKey, op.Brief = true, keyUnique+string(unique), true
	s.ask(op)
}

func (s *session) echo(m *message) {
	s.Pipeline.Local(pending{kind: echoAnswer, typ: packet.EchoRes, arg: m.args[0]})
}

func (s *session) option(m *message) {
	if !strings.EqualFold(string(cutNUL(m.args[0])), "exceptions") {
		s.refuse(&errOption)
		return
	}
	s.exceptions = true
	s.Pipeline.Local(pending{kind: echoAnswer, typ: packet.OptionRes, arg: m.args[0]})
}

func (s *session) setClientID(m *message) {
	id := cutNUL(m.args[0])
	s.front.workers.setID(s.entry, string(id[:min(len(id), maxClientIDBytes)]))
}

// maxMessageBytes limits the part of an exception that clients of other protocols see.
const maxMessageBytes = 1000

// messageOf is the message of an exception for other protocols: its text, or nothing if it is not UTF-8.
func messageOf(data []byte) string {
	text := core.CutText(data, maxMessageBytes)
	if !utf8.Valid(text) {
		return ""
	}
	return string(text)
}
