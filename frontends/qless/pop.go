package qless

// pop queue worker count
func pop(t *tx, in *input) (any, error) {
	name := in.queue(0)
	worker := in.need(1, `Pop(): Arg "worker" missing`)
	count := in.number(2, `Pop(): Arg "count" missing or not a number: `)
	lock, err := t.m.config.heartbeat(name)
	in.refuse(err)
	if in.err != nil {
		return nil, in.err
	}
	if t.m.paused[name] {
		return "{}", nil
	}
	t.seeWorker(worker)
	if limit := t.m.config.numberOr(name+"-max-concurrency", 0); limit > 0 {
		locks := t.m.set(name, lockSet)
		held := float64(locks.len() - locks.rank(t.now, false))
		if count = min(max(limit-held, 0), count); count == 0 {
			return "{}", nil
		}
	}
	n, ok := wholeNumber(count)
	if !ok {
		return nil, errInteger
	}
	n = min(n, maxJobsOfCall)
	room := maxBytesOfCall
	jids := t.expireLocks(name, ofCall(n), &room)
	t.makeDue(name, ofCall(n-len(jids)))
	jids = append(jids, t.fitting(t.firstWaiting(name, n-len(jids)), maxJobsOfCall-len(jids), &room)...)
	for _, jid := range jids {
		t.give(t.m.jobs.get(jid), name, worker, t.now+lock)
	}
	return t.jobsJSON(jids)
}

// give locks a job for a worker.
func (t *tx) give(j *job, queue, worker string, until float64) {
	t.edit(j)
	t.recordEvent(j, t.now, "popped", workerItem(worker))
	waited := t.now - j.time
	t.count(queue, t.now, func(s *statistics) { s.wait.add(waited) })
	j.time = t.now
	t.hold(j, worker, until)
	t.leave(j, waitingSet)
	t.enter(j, lockSet, queue, until)
	j.worker, j.expires, j.state = worker, until, running
	t.publishTracked("popped", j)
}

// makeDue creates due recurring jobs and makes due scheduled jobs ready, at most count of each.
func (t *tx) makeDue(queue string, count int) {
	t.spawnDue(queue, count)
	t.promoteScheduled(queue, count)
}

// firstWaiting lists the first waiting jobs of a queue.
func (t *tx) firstWaiting(queue string, count int) []string {
	if count == 0 {
		return nil
	}
	return t.m.set(queue, waitingSet).slice(0, count-1, true)
}

// promoteScheduled makes due scheduled jobs ready. A negative count means no limit.
func (t *tx) promoteScheduled(queue string, count int) {
	for _, jid := range t.m.set(queue, scheduledSet).between(0, t.now, 0, count) {
		j := t.m.jobs.get(jid)
		t.edit(j)
		t.wait(j, queue, t.now)
		t.leave(j, scheduledSet)
		j.state = waiting
	}
}

// jobsJSON returns a list of jobs as JSON.
func (t *tx) jobsJSON(jids []string) (string, error) {
	var b []byte
	for _, jid := range jids {
		j := t.m.jobs.get(jid)
		if j == nil {
			continue
		}
		t.front.readData(j)
		var err error
		if b, err = t.m.appendJob(append(b, "[,"[min(len(b), 1)]), j); err != nil {
			return "", fault("%s", err)
		}
		if len(b) > maxReplyBytes {
			return "", fault("the jobs have more than %d MiB; ask for fewer", maxReplyBytes>>20)
		}
	}
	if len(b) == 0 {
		return "{}", nil
	}
	return string(append(b, ']')), nil
}

// expireLocks handles the expired locks of a queue, the oldest first. It notifies the worker of each job once; the
// worker may still finish the job during the grace period. It returns the jobs whose grace period has ended, which pop
// may hand out again.
func (t *tx) expireLocks(queue string, count int, room *int) (jids []string) {
	grace := t.m.config.numberOr("grace-period", 10)
	for _, jid := range t.m.set(queue, lockSet).between(minusInf, t.now, 0, count) {
		j := t.m.jobs.get(jid)
		if !t.fits(j, room) {
			break
		}
		t.edit(j)
		t.unhold(j, j.worker)
		warned := j.grace
		if !warned || grace <= 0 {
			t.warnWorker(j, queue, grace)
		}
		if !warned && grace > 0 {
			continue
		}
		j.grace = false
		j.remaining--
		if j.remaining < 0 {
			t.exhaust(j, queue)
		} else {
			jids = append(jids, jid)
		}
	}
	return jids
}

// warnWorker tells the worker of a job that its lock has expired.
func (t *tx) warnWorker(j *job, queue string, grace float64) {
	t.publishTracked("stalled", j)
	t.recordEvent(j, t.now, "timed-out", "")
	j.grace = true
	t.lockLost(j, j.worker)
	t.enter(j, lockSet, queue, t.now+grace)
	t.count(queue, t.now, func(s *statistics) { s.retries++ })
}

// exhaust fails a job whose lock has expired and that has no retries left.
func (t *tx) exhaust(j *job, queue string) {
	worker, group := j.worker, "failed-retries-"+j.queue
	message := `Job exhausted retries in queue "` + queue + `"`
	t.leave(j, waitingSet, lockSet, scheduledSet)
	t.recordEvent(j, t.now, "failed", groupItem(group))
	j.state, j.worker, j.expires = failed, "", 0
	j.failure = &failure{group: group, message: message, when: t.now}
	t.enterFailed(j, group)
	t.publishTracked("failed", j)
	t.publish("log",
		object("jid", j.jid, "event", "failed", "group", group, "worker", worker, "message", message).json())
	t.countFailure(queue)
}

// peek queue count
func peek(t *tx, in *input) (any, error) {
	name := in.queue(0)
	count := in.number(1, `Peek(): Arg "count" missing or not a number: `)
	if in.err != nil {
		return nil, in.err
	}
	n, ok := wholeNumber(count)
	if !ok {
		return nil, errInteger
	}
	n = min(n, maxJobsOfCall)
	room := maxBytesOfCall
	jids := t.m.set(name, lockSet).between(minusInf, t.now, 0, ofCall(n))
	t.makeDue(name, ofCall(n-len(jids)))
	return t.jobsJSON(t.fitting(append(jids, t.firstWaiting(name, n-len(jids))...), maxJobsOfCall, &room))
}
