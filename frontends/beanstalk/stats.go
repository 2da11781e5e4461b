package beanstalk

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"syscall"
	"time"

	"broker/access"
	"broker/core"
)

func (s *session) statsJob(p *pipeline, a *args) {
	if ref, ok := s.id(p, a, verbStatsJob); ok {
		p.Ask(&core.Inspect{Tag: p.expect(pending{answer: answerStatsJob}), Ref: ref})
	}
}

// stateOf is the state of a job for clients; empty: the job does not exist for them.
func stateOf(state core.State) string {
	switch state {
	case core.Ready:
		return "ready"
	case core.Leased:
		return "reserved"
	case core.Scheduled, core.Retrying, core.Blocked:
		return "delayed"
	case core.Dead:
		return "buried"
	case core.Gone, core.Done:
	}
	return ""
}

// wholeSeconds rounds a duration down to seconds, at least zero.
func wholeSeconds(d time.Duration) uint64 { return uint64(max(d, 0) / time.Second) }

func answerStatsJob(s *session, b []byte, _ *pending, r *core.Reply) ([]byte, bool) {
	i := r.Info
	state := stateOf(i.State)
	if state == "" || i.Job == nil {
		return append(b, notFound...), true
	}
	now := s.front.broker.Now()
	left := uint64(0)
	switch {
	case i.State == core.Leased && i.LeaseUntil != 0:
		left = wholeSeconds(i.LeaseUntil.Sub(now))
	case i.State == core.Scheduled || i.State == core.Retrying:
		left = wholeSeconds(i.ReadyAt.Sub(now))
	}
	d := newDictionary()
	d.number("id", i.Seq)
	if tube, ok := s.front.tube(i.Queue); ok {
		d.name("tube", tube)
	} else {
		d.text("tube", printable(i.Queue))
	}
	d.text("state", state)
	d.number("pri", priOf(i.Priority))
	d.number("age", wholeSeconds(now.Sub(i.CreatedAt)))
	d.number("delay", attributesOf(i.Job).Delay)
	d.number("ttr", ttrOf(i.Job))
	d.number("time-left", left)
	d.number("file", 0)
	d.number("reserves", uint64(i.Attempts))
	d.number("timeouts", uint64(i.Tally.Timeouts))
	d.number("releases", uint64(i.Tally.Releases))
	d.number("buries", uint64(i.Tally.Burials))
	d.number("kicks", uint64(i.Tally.Kicks))
	return appendYAML(b, d), true
}

func (s *session) statsTube(p *pipeline, a *args) {
	name, ok := s.tubeName(p, a, verbStatsTube)
	if !ok {
		return
	}
	p.Ask(&core.InspectQueue{
		Tag: p.expect(pending{answer: answerStatsTube, tube: name, left: 1}), Queue: s.front.queue(name),
	})
}

// endless is the shown length of a pause without an end.
const endless = math.MaxUint32

func answerStatsTube(s *session, b []byte, p *pending, r *core.Reply) ([]byte, bool) {
	q := &core.QueueInfo{}
	if len(r.Queues) > 0 {
		q = &r.Queues[0]
	} else if p.tube != defaultTube {
		return append(b, notFound...), true
	}
	t := s.front.tubes.of(p.tube)
	submitted := uint64(0)
	for _, n := range q.Counts.Submitted {
		submitted += n
	}
	pause, left := uint64(0), uint64(0)
	switch {
	case q.Paused && q.PausedUntil == 0:
		pause, left = endless, endless
	case q.Paused:
		pause, left = wholeSeconds(q.PausedFor), wholeSeconds(q.PausedUntil.Sub(s.front.broker.Now()))
	}
	d := newDictionary()
	d.name("name", p.tube)
	d.count("current-jobs-urgent", q.High)
	d.count("current-jobs-ready", q.Ready())
	d.count("current-jobs-reserved", q.Leased)
	d.count("current-jobs-delayed", q.Scheduled+q.Retrying+q.Blocked)
	d.count("current-jobs-buried", q.Dead)
	d.number("total-jobs", submitted)
	d.count("current-using", t.using)
	d.count("current-watching", t.watching)
	d.count("current-waiting", t.waiting)
	d.number("cmd-delete", q.Counts.Done[core.Beanstalk]+q.Counts.Cancelled[core.Beanstalk])
	d.number("cmd-pause-tube", q.Counts.Paused[core.Beanstalk])
	d.number("pause", pause)
	d.number("pause-time-left", left)
	return appendYAML(b, d), true
}

func (s *session) stats(p *pipeline, _ *args) {
	s.count(verbStats)
	s.Flush()
	if !s.Allowed(access.Read) {
		p.say(unknown)
		return
	}
	urgent, known := 0, 0 // ready jobs with a pri below 1024; tubes
	s.start(&queueWalk{
		ask: s.unguarded,
		each: func(q *core.QueueInfo) {
			if _, ok := s.front.tube(q.Name); ok {
				urgent += q.High
				known++
			}
		},
		finish: func(s *session, commit core.Commit) {
			for _, r := range s.do(&core.ReadStats{Tag: 1}) {
				out := s.Conn.Out()
				if r.Kind == core.Failed {
					out.WriteString(errorText(r.Err, false))
				} else {
					out.Put(appendYAML(out.Buf(), s.front.statistics(r.Stats, urgent, known)), max(commit, r.Commit))
				}
			}
		},
	})
}

// commandNames are the counters of stats, in its order; kick-job and reserve-job have none.
var commandNames = [...]struct {
	name string
	verb verb
}{
	{"put", verbPut},
	{"peek", verbPeek},
	{"peek-ready", verbPeekReady},
	{"peek-delayed", verbPeekDelayed},
	{"peek-buried", verbPeekBuried},
	{"reserve", verbReserve},
	{"reserve-with-timeout", verbReserveTimeout},
	{"delete", verbDelete},
	{"release", verbRelease},
	{"use", verbUse},
	{"watch", verbWatch},
	{"ignore", verbIgnore},
	{"bury", verbBury},
	{"kick", verbKick},
	{"touch", verbTouch},
	{"stats", verbStats},
	{"stats-job", verbStatsJob},
	{"stats-tube", verbStatsTube},
	{"list-tubes", verbListTubes},
	{"list-tube-used", verbListTubeUsed},
	{"list-tubes-watched", verbListTubesWatched},
	{"pause-tube", verbPauseTube},
}

// statistics is the answer of stats.
func (f *Frontend) statistics(st *core.Stats, urgent, known int) []byte {
	d := newDictionary()
	d.count("current-jobs-urgent", urgent)
	d.count("current-jobs-ready", st.Jobs[core.Ready])
	d.count("current-jobs-reserved", st.Jobs[core.Leased])
	d.count("current-jobs-delayed", st.Jobs[core.Scheduled]+st.Jobs[core.Retrying]+st.Jobs[core.Blocked])
	d.count("current-jobs-buried", st.Jobs[core.Dead])
	for _, c := range commandNames {
		d.number("cmd-"+c.name, f.commands[c.verb].Load())
	}
	d.number("job-timeouts", st.Due[core.Leased])
	d.number("total-jobs", st.Totals.Submitted)
	d.count("max-job-size", f.opts.MaxBodyBytes)
	d.count("current-tubes", max(known, 1))
	d.count("current-connections", int(f.connections.Load()))
	d.count("current-producers", int(f.producers.Load()))
	d.count("current-workers", int(f.workers.Load()))
	d.count("current-waiting", int(f.waiting.Load()))
	d.number("total-connections", f.opened.Load())
	d.count("pid", os.Getpid())
	d.text("version", printable(serverVersion))
	user, system := processorTime()
	d.text("rusage-utime", user)
	d.text("rusage-stime", system)
	d.number("uptime", wholeSeconds(f.broker.Now().Sub(st.StartedAt)))
	for _, key := range []string{"oldest-index", "current-index", "records-migrated", "records-written", "max-size"} {
		d.number("binlog-"+key, 0)
	}
	d.text("draining", fmt.Sprint(st.Refusing || st.Draining))
	d.text("id", f.id)
	d.text("hostname", printable(f.host))
	d.text("os", printable(runtime.GOOS))
	d.text("platform", printable(runtime.GOARCH))
	d.text("broker-version", printable(f.opts.Version)) // not of beanstalkd
	return d
}

// processorTime is the processor time of the process in user and system mode.
func processorTime() (user, system string) {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r) // zero is harmless
	return fmt.Sprintf("%d.%06d", r.Utime.Sec, r.Utime.Usec), fmt.Sprintf("%d.%06d", r.Stime.Sec, r.Stime.Usec)
}

func (s *session) listTubes(p *pipeline, _ *args) {
	s.count(verbListTubes)
	s.Flush()
	names := []string{defaultTube}
	s.start(&queueWalk{
		ask: s.do,
		each: func(q *core.QueueInfo) {
			if name, ok := s.front.tube(q.Name); ok && name != defaultTube {
				names = append(names, name)
			}
		},
		finish: func(s *session, commit core.Commit) {
			out := s.Conn.Out()
			out.Put(appendYAML(out.Buf(), list(names)), commit)
		},
	})
}

func (s *session) pauseTube(p *pipeline, a *args) {
	name, span := string(a.spacedName()), a.small()
	if !a.end() {
		p.say(badFormat)
		return
	}
	s.count(verbPauseTube)
	s.Flush()
	queue := s.front.queue(name)
	if !s.AllowedFor(access.Operate, queue) { // whether the tube exists or not
		p.say(unknown)
		return
	}
	if name == defaultTube { // it always exists
		s.hold(name)
		defer s.free(name)
	}
	found, commit := s.queueInfo(queue)
	if found == nil {
		p.sayAfter(notFound, commit)
		return
	}
	p.Ask(&core.PauseQueue{
		Tag: p.expect(pending{answer: answerPause, tube: name}), Queue: queue, Paused: span > 0, For: seconds(span),
	})
	s.Flush()
}

func answerPause(s *session, b []byte, p *pending, _ *core.Reply) ([]byte, bool) {
	s.note("queue.pause", p.tube, "")
	return append(b, paused...), true
}
