package qless

import "math"

// fail jid worker group message [data]
func fail(t *tx, in *input) (any, error) {
	jid := in.jid(0)
	worker := in.need(1, `Fail(): Arg "worker" missing`)
	group := in.need(2, `Fail(): Arg "group" missing`)
	message := in.need(3, `Fail(): Arg "message" missing`)
	data := in.optionalJSON(4)
	if in.err != nil {
		return nil, in.err
	}
	j := t.m.jobs.get(jid)
	switch {
	case j == nil:
		return nil, fault("Fail(): Job %sdoes not exist", jid)
	case j.state != running:
		return nil, fault("Fail(): Job %snot currently running: %s", jid, j.state)
	case j.worker != worker:
		return nil, fault("Fail(): Job %s running with another worker: %s", jid, j.worker)
	}
	if err := t.setNewData(j, data); err != nil {
		return nil, err
	}
	t.failJob(j, worker, group, message)
	return jid, nil
}

// setNewData sets optional data of a job, in the form in which the script writes JSON that it has parsed.
func (t *tx) setNewData(j *job, data any) error {
	if data == nil {
		return nil
	}
	text, err := encode(data)
	if err != nil {
		return fault("%s", err)
	}
	t.setData(j, text)
	return nil
}

// failJob marks a job as failed, as its worker reports.
func (t *tx) failJob(j *job, worker, group, message string) {
	t.edit(j)
	t.publish("log",
		object("jid", j.jid, "event", "failed", "worker", worker, "group", group, "message", message).json())
	t.publishTracked("failed", j)
	t.unhold(j, worker)
	t.recordEvent(j, t.now, "failed", failedItem(worker, group))
	t.countFailure(j.queue)
	t.leave(j, waitingSet, lockSet, scheduledSet)
	j.state, j.worker, j.expires = failed, "", 0
	j.failure = &failure{group: group, message: message, when: math.Floor(t.now), worker: worker}
	t.enterFailed(j, group)
}

func (t *tx) countFailure(queue string) {
	t.count(queue, t.now, func(s *statistics) {
		s.failures++
		s.failed++
	})
}

// retry jid queue worker [delay [group message]]
func retry(t *tx, in *input) (any, error) {
	jid := in.jid(0)
	queue := in.need(1, `Retry(): Arg "queue" missing`)
	worker := in.need(2, `Retry(): Arg "worker" missing`)
	delay := in.numberOr(3, 0, `Retry(): Arg "delay" not a number: `)
	in.finite(delay)
	if in.err != nil {
		return nil, in.err
	}
	j := t.m.jobs.get(jid)
	switch {
	case j == nil:
		return nil, fault("Retry(): Job %s does not exist", jid)
	case j.state != running:
		return nil, fault("Retry(): Job %s is not currently running: %s", jid, j.state)
	case j.worker != worker:
		return nil, fault("Retry(): Job %s has been given to another worker: %s", jid, j.worker)
	}
	t.edit(j)
	j.remaining--
	j.grace = false
	t.leave(j, lockSet)
	t.unhold(j, worker)
	group, hasGroup := in.get(4)
	message, hasMessage := in.get(5)
	if j.remaining < 0 {
		t.exhaustByRetry(j, worker, queue, in.from(4))
		return j.remaining, nil
	}
	if delay > 0 {
		t.enter(j, scheduledSet, queue, t.now+delay)
		j.state = scheduled
	} else {
		t.wait(j, queue, t.now)
		j.state = waiting
	}
	if hasGroup && hasMessage {
		j.failure = &failure{group: group, message: message, when: math.Floor(t.now), worker: worker}
	}
	return j.remaining, nil
}

// exhaustByRetry fails a job that has no retries left. a may contain a group and a message.
func (t *tx) exhaustByRetry(j *job, worker, queue string, a args) {
	group, hasGroup := a.get(0)
	if !hasGroup {
		group = "failed-retries-" + queue
	}
	t.recordEvent(j, t.now, "failed", groupItem(group))
	j.state, j.worker, j.expires = failed, "", 0
	if message, ok := a.get(1); ok {
		j.failure = &failure{group: group, message: message, when: math.Floor(t.now), worker: worker}
	} else {
		j.failure = &failure{group: group, message: `Job exhausted retries in queue "` + j.queue + `"`, when: t.now}
	}
	t.publishTracked("failed", j)
	t.enterFailed(j, group)
	t.countFailure(queue)
}

// failedCommand [group [start [limit]]]
func failedCommand(t *tx, in *input) (any, error) {
	start := in.numberOr(1, 0, `Failed(): Arg "start" is not a number: `)
	limit := in.numberOr(2, 25, `Failed(): Arg "limit" is not a number: `)
	if in.err != nil {
		return nil, in.err
	}
	group, given := in.get(0)
	if !given {
		r := newTable(0)
		for _, g := range sortedKeys(t.m.failures) {
			r.set(g, float64(t.m.failures[g].len()))
		}
		return encode(r)
	}
	first, n := in.page(start, limit)
	if in.err != nil {
		return nil, in.err
	}
	z := setOf(t.m.failures, group)
	return totalAndJobs(z.len(), z.slice(first, first+n-1, true))
}

// totalAndJobs returns a page of a list of jobs.
func totalAndJobs(total int, jids []string) (any, error) {
	return encode(object("total", float64(total), "jobs", jids))
}

// unfailCount is the default number of jobs that unfail moves.
const unfailCount = 25

// unfailed returns the jobs that unfail moves: the oldest of a group.
func (m *model) unfailed(group string, count float64) []string {
	n, ok := wholeNumber(count)
	if !ok || n == 0 {
		return nil
	}
	jids := setOf(m.failures, group).slice(-min(n, maxJobsOfCall), -1, true)
	return jids[:min(len(jids), maxJobsOfCall)]
}

// unfail queue group [count]
func unfail(t *tx, in *input) (any, error) {
	queue := in.queue(0)
	group := in.need(1, `Unfail(): Arg "group" missing`)
	count := in.numberOr(2, unfailCount, `Unfail(): Arg "count" not a number: `)
	if n, ok := wholeNumber(count); !ok || n == 0 { // Redis does not take the script's -0 as an index
		in.refuse(errInteger)
	}
	if in.err != nil {
		return nil, in.err
	}
	jids := t.m.unfailed(group, count)
	for _, jid := range jids {
		j := t.m.jobs.get(jid)
		t.edit(j)
		t.leaveFailed(j)
		t.recordEvent(j, t.now, "put", queueItem(queue))
		j.state, j.worker, j.expires, j.queue, j.remaining = waiting, "", 0, queue, j.retries
		t.wait(j, queue, t.now)
	}
	return float64(len(jids)), nil
}
