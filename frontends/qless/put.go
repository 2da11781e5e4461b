package qless

import "slices"

// putOptions are the optional arguments of put.
type putOptions struct {
	priority, retries float64
	tags, depends     []string
}

// options reads the options of a put. The values of the existing job are the defaults.
func (t *tx) putOptions(a args, j *job) (o putOptions, err error) {
	if len(a)%2 == 1 {
		return o, oddArgs(a)
	}
	given := a.options()
	retries, priority, tags := 5.0, 0.0, []string(nil)
	if j != nil {
		retries, priority, tags = j.retries, j.priority, j.tags
	}
	if o.retries, err = optionalNumber(given, "retries", retries, `Put(): Arg "retries" not a number: `); err != nil {
		return o, err
	}
	if o.tags, err = optionalList(given, "tags", tags, `Put(): Arg "tags" not JSON`); err != nil {
		return o, err
	}
	if o.priority, err = optionalNumber(given, "priority", priority, `Put(): Arg "priority" not a number`); err != nil {
		return o, err
	}
	if o.depends, err = optionalList(given, "depends", nil, `Put(): Arg "depends" not JSON: `); err != nil {
		return o, err
	}
	return o, finite(o.retries, o.priority)
}

var putShape = shapeOf("jid", "event", "queue")

// put me queue jid klass data delay [name value]...
func put(t *tx, a args) (any, error) {
	name, err := queueArg(a, 1)
	if err != nil {
		return nil, err
	}
	jid, err := a.need(2, `Put(): Arg "jid" missing`)
	if err != nil {
		return nil, err
	}
	klass, err := a.need(3, `Put(): Arg "klass" missing`)
	if err != nil {
		return nil, err
	}
	if _, err := a.decodeArg(4, `Put(): Arg "data" missing or not JSON: `); err != nil {
		return nil, err
	}
	delay, err := a.finite(5, `Put(): Arg "delay" not a number: `)
	if err != nil {
		return nil, err
	}
	j := t.m.jobs.get(jid)
	o, err := t.putOptions(a.from(6), j)
	if err != nil {
		return nil, err
	}
	t.publish("log", putShape.json(members{"jid": jid, "event": "put", "queue": name}))
	if j == nil {
		j = t.create(jid)
	} else {
		t.takeFromOldPlace(j, a.text(0), name, o)
	}
	t.edit(j)
	t.recordEvent(j, t.now, "put", queueItem(name))
	t.tagAll(j, o.tags)
	j.klass = klass
	t.setData(j, a[4])
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
	t.untagAll(j)
	if len(o.depends) > 0 {
		for _, d := range j.dependencies {
			if !slices.Contains(o.depends, d) {
				t.unlink(j, d)
			}
		}
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
func requeue(t *tx, a args) (any, error) {
	jid, err := jidArg(a, 2)
	if err != nil {
		return nil, err
	}
	if !t.m.jobs.has(jid) {
		return nil, fault("Requeue(): Job %s does not exist", jid)
	}
	return put(t, a)
}

// jidArg reads the id of a job.
func jidArg(a args, i int) (string, error) { return a.need(i, "Job(): no jid provided") }

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
