package qless

// dependOn makes a job wait for the jobs of the list that exist and are not complete. It returns their number.
func (t *tx) dependOn(j *job, jids []string) int {
	var added []string
	for _, jid := range jids {
		if on := t.m.jobs.get(jid); on != nil && on.state != complete {
			t.edit(on)
			on.dependents = with(on.dependents, j.jid)
			added = append(added, jid)
		}
	}
	if len(added) > 0 {
		t.edit(j)
		j.dependencies = withAll(j.dependencies, added)
	}
	return len(added)
}

// unlink removes dependencies of a job. The other jobs may no longer exist.
func (t *tx) unlink(j *job, jids []string) {
	if len(jids) == 0 {
		return
	}
	t.edit(j)
	j.dependencies = withoutAll(j.dependencies, jids)
	for _, jid := range jids {
		if on := t.m.jobs.get(jid); on != nil {
			t.edit(on)
			on.dependents = without(on.dependents, j.jid)
		}
	}
}

// dependsCommand jid on|off jid...
func dependsCommand(t *tx, in *input) (any, error) {
	jid := in.jid(0)
	command := in.need(1, `Depends(): Arg "command" missing`)
	if in.err != nil {
		return nil, in.err
	}
	j := t.m.jobs.get(jid)
	if j == nil {
		return nil, fault("Depends(): Job %s not in the depends state: false", jid)
	}
	if j.state != depends {
		return nil, fault("Depends(): Job %s not in the depends state: %s", jid, j.state)
	}
	switch {
	case command == "on":
		t.dependOn(j, in.from(2))
	case command == "off" && in.text(2) == "all":
		t.unlink(j, j.dependencies)
		t.stopWaiting(j)
	case command == "off":
		if t.unlink(j, in.from(2)); len(j.dependencies) == 0 && len(in.from(2)) > 0 {
			t.stopWaiting(j)
		}
	default:
		return nil, fault(`Depends(): Argument "command" must be "on" or "off"`)
	}
	return true, nil
}

// stopWaiting makes a blocked job ready.
func (t *tx) stopWaiting(j *job) {
	t.leave(j, dependsSet)
	t.wait(j, j.queue, t.now)
	j.state = waiting
}

// releaseDependents releases the jobs whose last dependency was this job.
func (t *tx) releaseDependents(j *job) {
	t.edit(j)
	for _, jid := range j.dependents {
		d := t.m.jobs.get(jid)
		if d == nil {
			continue
		}
		t.edit(d)
		if d.dependencies = without(d.dependencies, j.jid); len(d.dependencies) > 0 {
			continue
		}
		t.leave(d, dependsSet)
		if d.hasDue {
			t.enter(d, scheduledSet, d.queue, d.due)
			d.state, d.hasDue, d.due = scheduled, false, 0
		} else {
			t.wait(d, d.queue, t.now)
			d.state = waiting
		}
	}
	j.dependents = nil
}

// cancel jid...
func cancel(t *tx, in *input) (any, error) {
	mentioned := stringSet(in.args)
	for _, jid := range in.args {
		j := t.m.jobs.get(jid)
		if j == nil {
			continue
		}
		for _, d := range j.dependents {
			if !mentioned[d] {
				return nil, fault("Cancel(): %s is a dependency of %s but is not mentioned to be canceled", jid, d)
			}
		}
	}
	for _, jid := range in.args {
		t.cancelOne(jid)
	}
	return []string(in.args), nil
}

// canceledText is the message about a cancelled job.
func canceledText(j *job) string {
	return object("jid", j.jid, "worker", j.worker, "event", "canceled", "queue", j.queue).json()
}

// cancelOne removes a job that is not complete.
func (t *tx) cancelOne(jid string) {
	j := t.m.jobs.get(jid)
	if j == nil {
		t.publish("log", object("jid", jid, "worker", false, "event", "canceled", "queue", false).json())
		if t.m.tracked.has(jid) {
			t.publish("canceled", jid)
		}
		return
	}
	if j.state == complete {
		return
	}
	text := canceledText(j)
	t.publish("log", text)
	if j.worker != "" {
		t.unhold(j, j.worker)
		t.publish("w:"+j.worker, text)
	}
	t.unlink(j, j.dependencies)
	if j.state == failed && j.failure != nil {
		t.count(j.queue, j.failure.when, func(s *statistics) { s.failed-- })
	}
	t.untagJob(j, j.tags)
	t.publishTracked("canceled", j)
	t.remove(j)
}
