package qless

// heartbeat jid worker [data]
func heartbeat(t *tx, in *input) (any, error) {
	jid := in.jid(0)
	worker := in.need(1, `Heatbeat(): Arg "worker" missing`)
	j := t.m.jobs.get(jid)
	queue := ""
	if j != nil {
		queue = j.queue
	}
	lock, err := t.m.config.heartbeat(queue)
	in.refuse(err)
	data := in.optionalJSON(2)
	if in.err != nil {
		return nil, in.err
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
func timeout(t *tx, in *input) (any, error) {
	for _, jid := range in.args {
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
func priority(t *tx, in *input) (any, error) {
	jid := in.jid(0)
	n := in.number(1, `Priority(): Arg "priority" missing or not a number: `)
	in.finite(n)
	if in.err != nil {
		return nil, in.err
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
func logCommand(t *tx, in *input) (any, error) {
	jid := in.need(0, "Log(): Argument 'jid' missing")
	text := in.need(1, "Log(): Argument 'message' missing")
	var data any
	if _, given := in.get(2); given {
		_, data = in.json(2, "Log(): Argument 'data' not cjson: ")
	}
	if in.err != nil {
		return nil, in.err
	}
	j := t.m.jobs.get(jid)
	if j == nil {
		return nil, fault("Log(): Job %s does not exist", jid)
	}
	item := ""
	if data != nil {
		var err error
		if item, err = encode(data); err != nil {
			return nil, fault("%s", err)
		}
	}
	t.recordEvent(j, t.now, text, item)
	return nil, nil
}

// get jid
func get(t *tx, in *input) (any, error) {
	jid := in.jid(0)
	if in.err != nil {
		return nil, in.err
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
func multiget(t *tx, in *input) (any, error) { return t.jobsJSON(in.args) }
