package beanstalk

import (
	"math"
	"slices"
	"time"

	"broker/access"
	"broker/core"
)

// verb is the number of a command, for its counter.
type verb uint8

const (
	verbPut verb = iota
	verbPeek
	verbPeekReady
	verbPeekDelayed
	verbPeekBuried
	verbReserve
	verbReserveTimeout
	verbDelete
	verbRelease
	verbUse
	verbWatch
	verbIgnore
	verbBury
	verbKick
	verbTouch
	verbStats
	verbStatsJob
	verbStatsTube
	verbListTubes
	verbListTubeUsed
	verbListTubesWatched
	verbPauseTube
	verbQuit
	verbReserveJob
	verbKickJob

	verbs
)

// command is one verb.
type command struct {
	args bool // a space and arguments follow
	bare bool // without arguments it is malformed, not unknown
	run  func(*session, *pipeline, *args)
}

// commands by their first word. put is handled separately, because it has a body.
var commands = map[string]command{
	"peek":                 {args: true, run: (*session).peek},
	"peek-ready":           {run: (*session).peekReady},
	"peek-delayed":         {run: (*session).peekDelayed},
	"peek-buried":          {run: (*session).peekBuried},
	"reserve":              {run: (*session).reserve},
	"reserve-with-timeout": {args: true, bare: true, run: (*session).reserveWithTimeout},
	"reserve-job":          {args: true, bare: true, run: (*session).reserveJob},
	"delete":               {args: true, run: (*session).remove},
	"release":              {args: true, run: (*session).release},
	"bury":                 {args: true, run: (*session).bury},
	"touch":                {args: true, run: (*session).touch},
	"use":                  {args: true, run: (*session).use},
	"watch":                {args: true, run: (*session).watch},
	"ignore":               {args: true, run: (*session).ignore},
	"kick":                 {args: true, run: (*session).kick},
	"kick-job":             {args: true, run: (*session).kickJob},
	"stats":                {run: (*session).stats},
	"stats-job":            {args: true, bare: true, run: (*session).statsJob},
	"stats-tube":           {args: true, bare: true, run: (*session).statsTube},
	"list-tubes":           {run: (*session).listTubes},
	"list-tube-used":       {run: (*session).listTubeUsed},
	"list-tubes-watched":   {run: (*session).listTubesWatched},
	"pause-tube":           {args: true, bare: true, run: (*session).pauseTube},
	"quit":                 {run: (*session).quit},
}

// count counts a well-formed command.
func (s *session) count(v verb) { s.front.commands[v].Add(1) }

// id reads the only argument of a command. If it is malformed, id answers the command with an error and ok is false.
func (s *session) id(p *pipeline, a *args, v verb) (core.Ref, bool) {
	id := a.number(math.MaxUint64)
	if !a.end() {
		p.say(badFormat)
		return core.Ref{}, false
	}
	s.count(v)
	if id == 0 { // no job has this number, and a Ref without a number would name a job by text
		p.say(notFound)
		return core.Ref{}, false
	}
	return core.Ref{Seq: id}, true
}

func (s *session) peek(p *pipeline, a *args) {
	if ref, ok := s.id(p, a, verbPeek); ok {
		p.Ask(&core.Inspect{Tag: p.expect(pending{answer: answerPeek, large: true}), Ref: ref})
	}
}

func (s *session) peekReady(p *pipeline, _ *args) {
	s.count(verbPeekReady)
	tag := p.expect(pending{answer: answerFirst, large: true})
	p.Ask(&core.ListJobs{Tag: tag, Queue: s.usedQueue(), State: core.Ready, Limit: 1})
}

func (s *session) peekDelayed(p *pipeline, _ *args) {
	s.count(verbPeekDelayed)
	s.peekOrder(p, core.OrderDue)
}

func (s *session) peekBuried(p *pipeline, _ *args) {
	s.count(verbPeekBuried)
	s.peekOrder(p, core.OrderDied)
}

// peekOrder answers with the first job of the used tube in an order.
func (s *session) peekOrder(p *pipeline, order core.Order) {
	if !s.AllowedFor(access.Read, s.usedQueue()) {
		p.say(unknown)
		return
	}
	s.Flush()
	found, _, commit := s.first(order, 1)
	if len(found) == 0 {
		p.sayAfter(notFound, commit)
		return
	}
	p.Ask(&core.Inspect{Tag: p.expect(pending{answer: answerPeek, large: true}), Ref: core.Ref{Seq: found[0].Seq}})
}

func (s *session) remove(p *pipeline, a *args) {
	ref, ok := s.id(p, a, verbDelete)
	if !ok {
		return
	}
	_, held := s.held[ref.Seq]
	mayCancel := !held || s.Principal().MaySome(access.Operate)
	replies := 1
	if held && mayCancel {
		replies++
	}
	tag := p.expect(pending{answer: answerDelete, seq: ref.Seq, left: replies})
	if held {
		op := p.Completes.Next()
		*op = core.Complete{Tag: tag, Ref: ref, Authority: core.ByHolder}
		p.Ask(op)
	}
	if mayCancel {
		p.Ask(&core.Cancel{
			Tag: tag, Ref: ref, If: core.InState(core.Ready, core.Scheduled, core.Retrying, core.Blocked, core.Dead),
		})
	}
}

func (s *session) release(p *pipeline, a *args) {
	id, pri, delay := a.number(math.MaxUint64), a.small(), a.small()
	if !a.end() {
		p.say(badFormat)
		return
	}
	s.count(verbRelease)
	l, held := s.held[id]
	if !held {
		p.say(notFound)
		return
	}
	op := &core.Move{
		Tag: p.expect(pending{answer: answerRelease, seq: id}), Ref: core.Ref{Seq: id}, If: core.InState(core.Leased),
		Authority: core.ByHolder,
		Set:       core.JobChange{Priority: l.changed(pri)},
	}
	if delay > 0 {
		op.ReadyAt = s.front.broker.Now().Add(seconds(delay))
	}
	if l.ours && delay != l.sent.Delay {
		l.sent.Delay = delay
		op.Set.Attributes = new(l.sent.encode())
	}
	p.Ask(op)
}

func (s *session) bury(p *pipeline, a *args) {
	id, pri := a.number(math.MaxUint64), a.small()
	if !a.end() {
		p.say(badFormat)
		return
	}
	s.count(verbBury)
	l, held := s.held[id]
	if !held {
		p.say(notFound)
		return
	}
	ref, dead := core.Ref{Seq: id}, core.ExhaustedBury
	p.Ask(&core.Atomic{Tag: p.expect(pending{answer: answerBury, seq: id}), Ops: []core.Op{
		&core.Update{
			Ref: ref, If: core.InState(core.Leased), Set: core.JobChange{Priority: l.changed(pri), Exhausted: &dead},
		},
		&core.Fail{Ref: ref, Authority: core.ByHolder, Final: true, Failure: &core.Failure{Type: "Buried"}},
	}})
}

func (s *session) touch(p *pipeline, a *args) {
	ref, ok := s.id(p, a, verbTouch)
	if !ok {
		return
	}
	l, held := s.held[ref.Seq]
	if !held {
		p.say(notFound)
		return
	}
	op := p.Reports.Next()
	*op = core.Report{
		Tag: p.expect(pending{answer: answerTouch, seq: ref.Seq}), Ref: ref, Authority: core.ByHolder, Heartbeat: true,
	}
	if l.span > 0 {
		op.LeaseUntil = s.front.broker.Now().Add(l.span)
	}
	p.Ask(op)
}

func (s *session) reserve(p *pipeline, _ *args) {
	s.count(verbReserve)
	s.take(p, noTimeout)
}

func (s *session) reserveWithTimeout(p *pipeline, a *args) {
	timeout := a.number(math.MaxInt32)
	if !a.end() {
		p.say(badFormat)
		return
	}
	s.count(verbReserveTimeout)
	s.take(p, seconds(timeout))
}

func (s *session) reserveJob(p *pipeline, a *args) {
	ref, ok := s.id(p, a, verbReserveJob)
	if !ok {
		return
	}
	s.countWorker()
	p.Ask(&core.LeaseJob{
		Tag: p.expect(pending{answer: answerReserveJob, large: true}), Ref: ref,
		If: core.InState(core.Ready, core.Scheduled, core.Retrying, core.Dead), ByConn: true, Dead: true,
	})
}

// tubeName reads the only argument of a command. If it is malformed, tubeName answers the command with an error and ok
// is false.
func (s *session) tubeName(p *pipeline, a *args, v verb) (name string, ok bool) {
	b := a.name()
	if !a.end() {
		p.say(badFormat)
		return "", false
	}
	s.count(v)
	return string(b), true
}

func (s *session) use(p *pipeline, a *args) {
	name, ok := s.tubeName(p, a, verbUse)
	if !ok {
		return
	}
	if name != s.used {
		s.Flush() // earlier commands concern the other tube
		s.hold(name)
		s.free(s.used)
		s.front.tubes.change(s.used, func(t *tube) { t.using-- })
		s.front.tubes.change(name, func(t *tube) { t.using++ })
		s.used, s.usedIn = name, ""
	}
	p.say("USING " + name + crlf)
}

func (s *session) watch(p *pipeline, a *args) {
	name, ok := s.tubeName(p, a, verbWatch)
	if !ok {
		return
	}
	if !slices.Contains(s.watched, name) {
		if len(s.watched) == maxWatched {
			p.say(outOfMemory)
			return
		}
		s.hold(name)
		s.front.tubes.change(name, func(t *tube) { t.watching++ })
		s.watched, s.queues = append(s.watched, name), nil
	}
	p.say(string(appendNumber(nil, "WATCHING", uint64(len(s.watched)))))
}

func (s *session) ignore(p *pipeline, a *args) {
	name, ok := s.tubeName(p, a, verbIgnore)
	if !ok {
		return
	}
	if i := slices.Index(s.watched, name); i >= 0 {
		if len(s.watched) == 1 {
			p.say(notIgnored)
			return
		}
		s.Flush()
		s.free(name)
		s.front.tubes.change(name, func(t *tube) { t.watching-- })
		s.watched, s.queues = slices.Delete(s.watched, i, i+1), nil
	}
	p.say(string(appendNumber(nil, "WATCHING", uint64(len(s.watched)))))
}

func (s *session) kickJob(p *pipeline, a *args) {
	if ref, ok := s.id(p, a, verbKickJob); ok {
		p.Ask(&core.Enqueue{
			Tag: p.expect(pending{answer: answerKickJob}), Ref: ref,
			If: core.InState(core.Dead, core.Scheduled, core.Retrying),
		})
	}
}

func (s *session) listTubeUsed(p *pipeline, _ *args) {
	s.count(verbListTubeUsed)
	p.say("USING " + s.used + crlf)
}

func (s *session) listTubesWatched(p *pipeline, _ *args) {
	s.count(verbListTubesWatched)
	p.say(string(appendYAML(nil, list(s.watched))))
}

func (s *session) quit(p *pipeline, _ *args) {
	s.Flush()
	s.HangUp()
}

// seconds converts a duration of the protocol.
func seconds(n uint64) time.Duration { return time.Duration(n) * time.Second }
