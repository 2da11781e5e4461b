package qless

// completion holds the parsed arguments of complete.
type completion struct {
	j             *job
	worker, queue string
	data          string
	next          string
	hasNext       bool
	delay         float64
	depends       []string
}

// completeCommand jid worker queue data [next q [delay n] [depends JSON]]
func completeCommand(t *tx, in *input) (any, error) {
	c, err := t.completion(in)
	if err != nil {
		return nil, err
	}
	j := c.j
	t.setData(j, c.data)
	t.endRun(j, c.worker, c.queue)
	if c.hasNext {
		return t.advance(c), nil
	}
	t.finish(j, c.queue)
	return "complete", nil
}

// completion reads and checks the arguments.
func (t *tx) completion(in *input) (c completion, err error) {
	jid := in.jid(0)
	c.worker = in.need(1, `Complete(): Arg "worker" missing`)
	c.queue = in.need(2, `Complete(): Arg "queue" missing`)
	c.data, _ = in.json(3, `Complete(): Arg "data" missing or not JSON: `)
	o := in.from(4).options()
	c.next, c.hasNext = o["next"]
	delay, hasDelay := o["delay"]
	if hasDelay {
		n, isNumber := parseNumber(delay)
		if !isNumber {
			in.refuse(fault("assertion failed!"))
		}
		in.finite(n)
		c.delay = n
	}
	var on any = newTable(0)
	text, hasDepends := o["depends"]
	if hasDepends {
		on = in.decode(text, `Complete(): Arg "depends" not JSON: `)
	}
	if hasDelay && !c.hasNext {
		in.refuse(fault(`Complete(): "delay" cannot be used without a "next".`))
	}
	if hasDepends && !c.hasNext {
		in.refuse(fault(`Complete(): "depends" cannot be used without a "next".`))
	}
	if in.err != nil {
		return c, in.err
	}
	c.j = t.m.jobs.get(jid)
	switch {
	case c.j == nil:
		err = fault("Complete(): Job %s does not exist", jid)
	case c.j.state != running:
		err = fault("Complete(): Job %s is not currently running: %s", jid, c.j.state)
	case c.j.worker != c.worker:
		err = fault("Complete(): Job %s has been handed out to another worker: %s", jid, c.j.worker)
	case c.j.queue != c.queue:
		err = fault("Complete(): Job %s running in another queue: %s", jid, c.j.queue)
	default:
		c.depends, err = in.listOfTexts(on), in.err
	}
	return c, err
}

// endRun ends the run of a job that is done.
func (t *tx) endRun(j *job, worker, queue string) {
	t.edit(j)
	t.recordEvent(j, t.now, "done", "")
	t.leave(j, waitingSet, lockSet, scheduledSet)
	took := t.now - j.time
	t.count(queue, t.now, func(s *statistics) { s.run.add(took) })
	j.time = t.now
	t.unhold(j, worker)
	t.publishTracked("completed", j)
}

// advance moves a completed job to its next queue and returns its new state.
func (t *tx) advance(c completion) string {
	j := c.j
	t.publish("log", object("jid", j.jid, "event", "advanced", "queue", c.queue, "to", c.next).json())
	t.recordEvent(j, t.now, "put", queueItem(c.next))
	t.seeQueue(c.next)
	t.reset(j, waiting, c.next)
	if c.delay > 0 && len(c.depends) == 0 {
		t.enter(j, scheduledSet, c.next, t.now+c.delay) // the state stays waiting, as in the script
		return scheduled
	}
	if t.dependOn(j, c.depends) > 0 {
		t.enter(j, dependsSet, c.next, t.now)
		j.state = depends
		if c.delay > 0 {
			j.due, j.hasDue = t.now+c.delay, true
		}
		return depends
	}
	t.wait(j, c.next, t.now)
	return waiting
}

// reset gives a job a state without a worker.
func (t *tx) reset(j *job, state, queue string) {
	t.edit(j)
	j.state, j.queue = state, queue
	j.worker, j.failure, j.expires, j.remaining = "", nil, 0, j.retries
}

// finish completes a job that has no next queue.
func (t *tx) finish(j *job, queue string) {
	t.publish("log", object("jid", j.jid, "event", "completed", "queue", queue).json())
	t.reset(j, complete, "")
	t.add(&t.m.completed, j.jid, t.now)
	j.completed, j.completedAt = true, t.now
	t.expireCompleted()
	t.releaseDependents(j)
}

// expireCompleted removes completed jobs that are too old or exceed the maximum number.
func (t *tx) expireCompleted() {
	age := t.m.config.numberOr("jobs-history", 604800)
	t.forget(t.m.completed.between(0, t.now-age, 0, -1))
	count := t.m.config.numberOr("jobs-history-count", 50000)
	if keep, ok := wholeNumber(count); ok && keep >= 0 && t.m.completed.len() > keep {
		t.forget(t.m.completed.slice(0, -1-keep, false))
	}
}

// forget removes completed jobs.
func (t *tx) forget(jids []string) {
	for _, jid := range jids {
		if j := t.m.jobs.get(jid); j != nil {
			t.untagJob(j, j.tags)
			t.remove(j)
		}
	}
}
