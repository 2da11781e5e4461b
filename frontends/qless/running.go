package qless

// heartbeat jid worker [data]
func heartbeat(t *tx, a args) (any, error) {
	jid, err := jidArg(a, 0)
	if err != nil {
		return nil, err
	}
	worker, err := a.need(1, `Heatbeat(): Arg "worker" missing`)
	if err != nil {
		return nil, err
	}
	j := t.m.jobs.get(jid)
	queue := ""
	if j != nil {
		queue = j.queue
	}
	lock, err := t.m.config.heartbeat(queue)
	if err != nil {
		return nil, err
	}
	data, err := optionalData(a, 2)
	if err != nil {
		return nil, err
	}
	switch {
	case j == nil:
		return nil, fault("Heartbeat(): Job %s does not exist", jid)
	case j.state != running:
		return nil, fault("Heartbeat(): Job %s not currently running: %s", jid, j.state)
	case j.worker != worker || worker == "":
		return nil, fault("Heartbeat(): Job %s given out to another worker: %s", jid, j.worker)
	}
	t.edit(j)
	if err := t.setNewData(j, data); err != nil {
		return nil, err
	}
	j.expires = t.now + lock
	t.hold(j, worker, j.expires)
	t.seeWorker(worker)
	t.enter(j, lockSet, j.queue, j.expires)
	return j.expires, nil
}

// timeout jid...
func timeout(t *tx, a args) (any, error) {
	for _, jid := range a {
		j := t.m.jobs.get(jid)
		switch {
		case j == nil:
			return nil, fault("Timeout(): Job %s does not exist", jid)
		case j.state != running:
			return nil, fault("Timeout(): Job %s not running", jid)
		}
		t.edit(j)
		t.recordEvent(j, t.now, "timed-out", "")
		t.leave(j, lockSet)
		t.stallFirst(j)
		j.state, j.expires = stalled, 0
		t.lockLost(j, j.worker)
	}
	return nil, nil
}

// priority jid n
func priority(t *tx, a args) (any, error) {
	jid, err := jidArg(a, 0)
	if err != nil {
		return nil, err
	}
	n, err := a.finite(1, `Priority(): Arg "priority" missing or not a number: `)
	if err != nil {
		return nil, err
	}
	j := t.m.jobs.get(jid)
	if j == nil {
		return nil, fault("Priority(): Job %s does not exist", jid)
	}
	t.edit(j)
	j.priority = n
	if p := j.places[waitingSet]; j.queue != "" && p.in && p.queue == j.queue {
		t.wait(j, j.queue, 0)
	}
	return n, nil
}

// logCommand jid message [JSON]
func logCommand(t *tx, a args) (any, error) {
	jid, err := a.need(0, "Log(): Argument 'jid' missing")
	if err != nil {
		return nil, err
	}
	text, err := a.need(1, "Log(): Argument 'message' missing")
	if err != nil {
		return nil, err
	}
	var data any
	if _, given := a.get(2); given {
		if data, err = a.decodeArg(2, "Log(): Argument 'data' not cjson: "); err != nil {
			return nil, err
		}
	}
	j := t.m.jobs.get(jid)
	if j == nil {
		return nil, fault("Log(): Job %s does not exist", jid)
	}
	item := ""
	if data != nil {
		if item, err = encode(data); err != nil {
			return nil, fault("%s", err)
		}
	}
	t.recordEvent(j, t.now, text, item)
	return nil, nil
}

// get jid
func get(t *tx, a args) (any, error) {
	jid, err := jidArg(a, 0)
	if err != nil {
		return nil, err
	}
	j := t.m.jobs.get(jid)
	if j == nil {
		return nil, nil
	}
	t.front.readData(j)
	b, err := t.m.appendJob(nil, j)
	if err != nil {
		return nil, fault("%s", err)
	}
	return string(b), nil
}

// multiget jid...
func multiget(t *tx, a args) (any, error) { return t.jobsJSON(a) }
