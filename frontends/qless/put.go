package qless

// putOptions are the optional arguments of put.
type putOptions struct {
	priority, retries float64
	tags, depends     []string
}

// putOptions reads the options of a put. The values of the existing job are the defaults.
func (in *input) putOptions(j *job) (o putOptions) {
	given := in.pairs(6)
	o.retries = 5
	if j != nil {
		o = putOptions{retries: j.retries, priority: j.priority, tags: j.tags}
	}
	o.retries = in.optionalNumber(given, "retries", o.retries, `Put(): Arg "retries" not a number: `)
	o.tags = in.optionalList(given, "tags", o.tags, `Put(): Arg "tags" not JSON`)
	o.priority = in.optionalNumber(given, "priority", o.priority, `Put(): Arg "priority" not a number`)
	o.depends = in.optionalList(given, "depends", nil, `Put(): Arg "depends" not JSON: `)
	in.finite(o.retries, o.priority)
	return o
}

// put me queue jid klass data delay [name value]...
func put(t *tx, in *input) (any, error) {
	name := in.queue(1)
	jid := in.need(2, `Put(): Arg "jid" missing`)
	klass := in.need(3, `Put(): Arg "klass" missing`)
	data, _ := in.json(4, `Put(): Arg "data" missing or not JSON: `)
	delay := in.number(5, `Put(): Arg "delay" not a number: `)
	in.finite(delay)
	j := t.m.jobs.get(jid)
	o := in.putOptions(j)
	if in.err != nil {
		return nil, in.err
	}
	t.publish("log", object("jid", jid, "event", "put", "queue", name).json())
	if j == nil {
		j = t.create(jid)
	} else {
		t.takeFromOldPlace(j, in.text(0), name, o)
	}
	t.edit(j)
	t.recordEvent(j, t.now, "put", queueItem(name))
	t.tagJob(j, o.tags)
	j.klass = klass
	t.setData(j, data)
	j.priority, j.tags = o.priority, o.tags
	j.worker, j.expires, j.queue = "", 0, name
	j.retries, j.remaining, j.time = o.retries, o.retries, t.now
	j.state = waiting
	if delay > 0 {
		j.state = scheduled
	}
	t.dependOn(j, o.depends)
	t.placePut(j, delay)
	t.seeQueue(name)
	t.publishTracked("put", j)
	return jid, nil
}

// placePut puts a job into the list that its dependencies and its delay require.
func (t *tx) placePut(j *job, delay float64) {
	switch {
	case len(j.dependencies) > 0:
		t.enter(j, dependsSet, j.queue, t.now)
		j.state = depends
		if delay > 0 {
			j.due, j.hasDue = t.now+delay, true
		}
	case delay > 0:
		t.enter(j, scheduledSet, j.queue, t.now+delay)
	default:
		t.wait(j, j.queue, t.now)
	}
}

// takeFromOldPlace removes a job from all its lists, before it is put again.
func (t *tx) takeFromOldPlace(j *job, by, queue string, o putOptions) {
	t.edit(j)
	t.untagJob(j, j.tags)
	if len(o.depends) > 0 {
		t.unlink(j, withoutAll(j.dependencies, o.depends))
	}
	t.leave(j, waitingSet, lockSet, dependsSet, scheduledSet)
	if j.worker != "" {
		t.unhold(j, j.worker)
		if j.worker != by {
			t.lockLost(j, j.worker)
		}
	}
	t.leaveCompleted(j)
	if j.state == failed {
		t.leaveFailed(j)
		if j.failure != nil {
			t.count(queue, j.failure.when, func(s *statistics) { s.failed-- })
		}
	}
}

// requeue has the same arguments as put. The job must exist.
func requeue(t *tx, in *input) (any, error) {
	jid := in.jid(2)
	if in.err != nil {
		return nil, in.err
	}
	if !t.m.jobs.has(jid) {
		return nil, fault("Requeue(): Job %s does not exist", jid)
	}
	return put(t, in)
}

// leaveCompleted removes a job from the list of completed jobs.
func (t *tx) leaveCompleted(j *job) {
	if j.completed {
		t.edit(j)
		t.drop(&t.m.completed, j.jid)
		j.completed = false
	}
}

// leaveFailed removes a job from the list of its failure group.
func (t *tx) leaveFailed(j *job) {
	if j.failedGroup != "" || j.failedAt != 0 {
		t.edit(j)
		t.unset(t.m.failures, j.failedGroup, j.jid)
		j.failedGroup, j.failedAt = "", 0
	}
}

// enterFailed puts a job at the front of the list of a failure group.
func (t *tx) enterFailed(j *job, group string) {
	t.edit(j)
	t.leaveFailed(j)
	t.m.failureCount++
	j.failedGroup, j.failedAt = group, t.m.failureCount
	t.setIn(t.m.failures, group, j.jid, j.failedAt)
}
