package workq

import (
	"math"
	"slices"

	"broker/core"
	"broker/frontends"
)

// inspect handles "inspect object …".
func (s *session) inspect(p *pipeline, r *request) {
	cmd, known := inspections[string(r.args[0])]
	r.args = slices.Delete(r.args, 0, 1)
	switch {
	case !known:
		p.say(badCommand)
	case !cmd.fits(r):
		p.say(badArgs)
	default:
		cmd.run(s, p, r)
	}
}

// inspectJob handles "inspect job id".
func (s *session) inspectJob(p *pipeline, r *request) {
	id, good := parseID(r.args[0]) // of any version, unlike elsewhere
	if !good {
		p.say(badID)
		return
	}
	ref := core.Ref{ID: id.text}
	p.Ask(&core.Inspect{Tag: p.expect(pending{answer: answerJob, large: true}), Ref: ref})
}

// inspectJobs handles "inspect jobs name offset limit".
func (s *session) inspectJobs(p *pipeline, r *request) { s.listJobs(p, r, core.Ready) }

// inspectScheduled handles "inspect scheduled-jobs name offset limit".
func (s *session) inspectScheduled(p *pipeline, r *request) { s.listJobs(p, r, core.Scheduled) }

// listJobs lists a page of the jobs of a queue in one state.
func (s *session) listJobs(p *pipeline, r *request, state core.State) {
	if !validName(r.args[0]) {
		p.say(badName)
		return
	}
	offset, limit, wrong := parsePage(r.args[1:])
	if wrong != "" {
		p.say(wrong)
		return
	}
	p.Ask(&core.ListJobs{
		Tag: p.expect(pending{answer: answerJobs, large: true}), Queue: s.queue(r.args[0]), State: state,
		Offset: offset, Limit: limit, NoBody: true,
	})
}

// inspectQueue handles "inspect queue name".
func (s *session) inspectQueue(p *pipeline, r *request) {
	if !validName(r.args[0]) {
		p.say(badName)
		return
	}
	p.Ask(&core.InspectQueue{Tag: p.expect(pending{answer: answerQueues}), Queue: s.queue(r.args[0])})
}

// inspectQueues handles "inspect queues offset limit".
func (s *session) inspectQueues(p *pipeline, r *request) {
	offset, limit, wrong := parsePage(r.args)
	if wrong != "" {
		p.say(wrong)
		return
	}
	p.Ask(&core.ListQueues{
		Tag: p.expect(pending{answer: answerQueues, large: true}), Prefix: s.front.opts.Namespace,
		Offset: offset, Limit: limit,
	})
}

// inspectServer handles "inspect server".
func (s *session) inspectServer(p *pipeline, _ *request) {
	p.Ask(&core.ReadStats{Tag: p.expect(pending{answer: answerServer})})
}

// parsePage parses an offset and a limit.
func parsePage(args [][]byte) (offset, limit int, wrong string) {
	o, good := frontends.ParseUint(args[0], math.MaxUint32)
	if !good {
		return 0, 0, badOffset
	}
	l, good := frontends.ParseUint(args[1], maxListed)
	if !good || l == 0 {
		return 0, 0, badLimit
	}
	return int(o), int(l), ""
}

// answerJob writes one job.
func answerJob(s *session, b []byte, _ *pending, r *core.Reply) []byte {
	if r.Info == nil || r.Info.Job == nil {
		return append(b, notFound...)
	}
	if _, ours := s.front.name(r.Info.Job.Queue); !ours {
		return append(b, notFound...)
	}
	return s.appendJob(appendOK(b, 1), r.Info)
}

// appendJob appends a job.
func (s *session) appendJob(b []byte, info *core.JobInfo) []byte {
	j := info.Job
	scheduled := j.ReadyAt != 0
	lines := 12
	if scheduled {
		lines++
	}
	name, _ := s.front.name(j.Queue)
	b = appendNumber(b, jobName(j), int64(lines))
	b = append(appendName(appendKey(b, "name"), name), crlf...)
	b = appendNumber(b, "ttr", j.LeaseFor.Milliseconds())
	b = appendNumber(b, "ttl", lifetime(j).Milliseconds())
	b = appendNumber(b, "payload-size", int64(len(j.Body)))
	b = appendBlob(appendKey(b, "payload"), j.Body)
	b = appendNumber(b, "max-attempts", int64(j.MaxAttempts))
	b = appendNumber(b, "attempts", int64(info.Attempts))
	b = appendNumber(b, "max-fails", int64(j.MaxFails))
	b = appendNumber(b, "fails", countedFails(info))
	b = appendNumber(b, "priority", min(max(info.Priority, math.MinInt32), math.MaxInt32)) // clients read 32 bits
	b = appendNumber(b, "state", stateNumber(info))
	b = appendTime(b, "created", info.CreatedAt.Time())
	if scheduled {
		b = appendTime(b, "time", j.ReadyAt.Time())
	}
	return b
}

// countedFails is the number of fails. The reference server does not count a final first fail, so such a job reports
// zero here too.
func countedFails(info *core.JobInfo) int64 {
	if info.Job.Origin == core.Workq && info.Job.MaxFails <= 1 {
		return 0
	}
	return int64(info.Fails)
}

// stateNumber is the number of a state in the protocol.
func stateNumber(info *core.JobInfo) int64 {
	const (
		isNew int64 = iota
		isCompleted
		isFailed
		isPending
		isLeased
	)
	switch info.State {
	case core.Gone, core.Scheduled, core.Blocked, core.Ready:
		if info.Requeued {
			return isPending
		}
		return isNew
	case core.Retrying:
		return isPending
	case core.Leased:
		return isLeased
	case core.Done:
		if info.Outcome != nil && info.Outcome.Success {
			return isCompleted
		}
		return isFailed
	case core.Dead:
		return isFailed
	}
	return isNew
}

// answerQueues writes queues.
func answerQueues(s *session, b []byte, _ *pending, r *core.Reply) []byte {
	b = appendOK(b, len(r.Queues))
	for i := range r.Queues {
		q := &r.Queues[i]
		name, _ := s.front.name(q.Name)
		b = append(appendName(b, name), " 2"+crlf...)
		b = appendNumber(b, "ready-len", int64(q.Ready()))
		b = appendNumber(b, "scheduled-len", int64(q.Scheduled))
	}
	return b
}

// answerServer writes the counters of the server. The reference server announces two lines but writes three; this one
// announces three.
func answerServer(_ *session, b []byte, _ *pending, r *core.Reply) []byte {
	b = append(appendOK(b, 1), "server 3"+crlf...)
	b = appendNumber(b, "active-clients", int64(r.Stats.Clients[core.Workq]))
	b = appendNumber(b, "evicted-jobs", int64(r.Stats.ByOrigin[core.Workq].Expired))
	return appendTime(b, "started", r.Stats.StartedAt.Time())
}
