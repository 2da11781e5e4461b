package qless

import "math"

// recurringJob is the definition of a recurring job.
type recurringJob struct {
	jid, klass, queue, data                     string
	priority, interval, retries, count, backlog float64
	tags                                        []string
	next                                        float64 // due time of the next job
}

var recurringShape = shapeOf("jid", "klass", "state", "queue", "priority", "interval", "retries", "count", "data", "tags", "backlog")

// json returns the definition in the form that clients see.
func (r *recurringJob) json() (any, error) {
	b, err := recurringShape.append(nil, members{
		"jid": r.jid, "klass": r.klass, "state": "recur", "queue": r.queue, "priority": r.priority, "interval": r.interval,
		"retries": r.retries, "count": r.count, "data": r.data, "tags": listOf(r.tags), "backlog": r.backlog,
	})
	return string(b), err
}

// editRecurring replaces a definition by a copy and returns the copy.
func (t *tx) editRecurring(r *recurringJob) *recurringJob {
	next := *r
	t.putRecurring(&next)
	return &next
}

func (t *tx) putRecurring(r *recurringJob) {
	was := t.m.recurring[r.jid]
	t.m.recurring[r.jid] = r
	t.undo = append(t.undo, func() {
		if was != nil {
			t.m.recurring[r.jid] = was
		} else {
			delete(t.m.recurring, r.jid)
		}
	})
	t.note(recurringDoc(r.jid))
}

// dueAt sets the due time of the next job of a definition.
func (t *tx) dueAt(r *recurringJob, at float64) {
	r.next = at
	t.add(t.list(r.queue, recurringSet), r.jid, at)
}

// recur queue jid klass data interval secs offset [name value]...
func recur(t *tx, a args) (any, error) {
	queue, err := queueArg(a, 0)
	if err != nil {
		return nil, err
	}
	jid, err := a.need(1, `RecurringJob On(): Arg "jid" missing`)
	if err != nil {
		return nil, err
	}
	klass, err := a.need(2, `RecurringJob On(): Arg "klass" missing`)
	if err != nil {
		return nil, err
	}
	spec, err := a.need(4, `RecurringJob On(): Arg "spec" missing`)
	if err != nil {
		return nil, err
	}
	if _, err := a.decodeArg(3, `RecurringJob On(): Arg "data" not JSON: `); err != nil {
		return nil, err
	}
	if spec != "interval" {
		return nil, fault(`Recur(): schedule type "%s" unknown`, spec)
	}
	r := &recurringJob{jid: jid, klass: klass, queue: queue, data: a[3]}
	offset, err := r.read(a.from(5))
	if err != nil {
		return nil, err
	}
	if old := t.m.recurring[jid]; old != nil {
		r.count = old.count
		t.dropDue(old)
	}
	t.putRecurring(r)
	t.dueAt(r, t.now+offset)
	t.seeQueue(queue)
	return jid, nil
}

// read reads the interval, the offset and the options.
func (r *recurringJob) read(a args) (offset float64, err error) {
	if r.interval, err = a.number(0, `Recur(): Arg "interval" not a number: `); err != nil {
		return 0, err
	}
	if offset, err = a.number(1, `Recur(): Arg "offset" not a number: `); err != nil {
		return 0, err
	}
	if r.interval <= 0 {
		return 0, fault(`Recur(): Arg "interval" must be greater than 0`)
	}
	if len(a)%2 == 1 {
		return 0, oddArgs(a)
	}
	o := a.from(2).options()
	if r.tags, err = optionalList(o, "tags", nil, `Recur(): Arg "tags" must be JSON string array: `); err != nil {
		return 0, err
	}
	for _, n := range []struct {
		name string
		to   *float64
	}{{"priority", &r.priority}, {"retries", &r.retries}, {"backlog", &r.backlog}} {
		if *n.to, err = optionalNumber(o, n.name, 0, `Recur(): Arg "`+n.name+`" not a number: `); err != nil {
			return 0, err
		}
	}
	return offset, finite(r.interval, offset, r.priority, r.retries, r.backlog)
}

// dropDue removes a definition from the list of its queue.
func (t *tx) dropDue(r *recurringJob) {
	t.drop(t.list(r.queue, recurringSet), r.jid)
	t.queues = append(t.queues, r.queue)
}

// unrecur jid
func unrecur(t *tx, a args) (any, error) {
	jid, err := recurringArg(a)
	if err != nil {
		return nil, err
	}
	if r := t.m.recurring[jid]; r != nil {
		t.dropDue(r)
		delete(t.m.recurring, jid)
		t.undo = append(t.undo, func() { t.m.recurring[jid] = r })
		t.note(recurringDoc(jid))
	}
	return true, nil
}

func recurringArg(a args) (string, error) { return a.need(0, "Recurring(): no jid provided") }

// recurGet jid
func recurGet(t *tx, a args) (any, error) {
	jid, err := recurringArg(a)
	if err != nil {
		return nil, err
	}
	if r := t.m.recurring[jid]; r != nil {
		return r.json()
	}
	return nil, nil
}

// recurUpdate jid [key value]...
func recurUpdate(t *tx, a args) (any, error) {
	jid, err := recurringArg(a)
	if err != nil {
		return nil, err
	}
	r := t.m.recurring[jid]
	if r == nil {
		return nil, fault("Recur(): No recurring job %s", jid)
	}
	r = t.editRecurring(r)
	for i := 1; i < len(a); i += 2 {
		key := a[i]
		value, err := a.need(i+1, "No value provided for "+key)
		if err != nil {
			return nil, err
		}
		if err := t.updateRecurring(r, key, value); err != nil {
			return nil, err
		}
	}
	return true, nil
}

// updateRecurring changes one member of a definition.
func (t *tx) updateRecurring(r *recurringJob, key, value string) error {
	number := func(to *float64, text string) error {
		f, ok := parseNumber(value)
		if !ok {
			return fault("%s%s", text, value)
		}
		*to = f
		return finite(f)
	}
	must := `Recur(): Arg "` + key + `" must be a number: `
	switch key {
	case "priority":
		return number(&r.priority, must)
	case "retries":
		return number(&r.retries, must)
	case "interval":
		was := r.interval
		if err := number(&r.interval, must); err != nil {
			return err
		}
		t.dueAt(r, r.next+r.interval-was)
	case "backlog":
		return number(&r.backlog, `Recur(): Arg "backlog" not a number: `)
	case "data":
		if _, err := decodeText(value, `Recur(): Arg "data" is not JSON-encoded: `); err != nil {
			return err
		}
		r.data = value
	case "klass":
		r.klass = value
	case "queue":
		t.dropDue(r)
		r.queue = value
		t.dueAt(r, r.next)
		t.seeQueue(value)
	default:
		return fault(`Recur(): Unrecognized option "%s"`, key)
	}
	return nil
}

// recurTag jid tag...
func recurTag(t *tx, a args) (any, error) {
	jid, err := recurringArg(a)
	if err != nil {
		return nil, err
	}
	r := t.m.recurring[jid]
	if r == nil {
		return nil, fault("Tag(): Job %s does not exist", jid)
	}
	had := map[string]bool{}
	for _, tag := range r.tags {
		had[tag] = true
	}
	r = t.editRecurring(r)
	for _, tag := range a.from(1) {
		if !had[tag] {
			r.tags = append(r.tags[:len(r.tags):len(r.tags)], tag)
		}
	}
	return encode(listOf(r.tags))
}

// recurUntag jid tag...
func recurUntag(t *tx, a args) (any, error) {
	jid, err := recurringArg(a)
	if err != nil {
		return nil, err
	}
	r := t.m.recurring[jid]
	if r == nil {
		return nil, fault("Untag(): Job %s does not exist", jid)
	}
	r = t.editRecurring(r)
	r.tags = withoutAll(r.tags, a.from(1))
	return encode(listOf(r.tags))
}

// spawnDue creates the due jobs of recurring definitions, at most count. It creates all missed jobs, unless the option backlog
// limits them.
func (t *tx) spawnDue(queue string, count int) {
	made := 0
	for _, jid := range t.m.set(queue, recurringSet).between(0, t.now, 0, count) {
		r := t.m.recurring[jid]
		due := math.Floor(r.next)
		if r.backlog != 0 {
			if missed := (t.now - due) / r.interval; missed > r.backlog {
				due += math.Ceil(missed-r.backlog) * r.interval
			}
		}
		if due > t.now || made >= count {
			continue
		}
		r = t.editRecurring(r)
		for due <= t.now && made < count {
			r.count++
			made++
			t.spawn(r, queue, due)
			due += r.interval
		}
		t.dueAt(r, due)
	}
}

// spawn creates one job of a recurring definition.
func (t *tx) spawn(r *recurringJob, queue string, due float64) {
	jid := r.jid + "-" + formatNumber(r.count)
	j := t.m.jobs.get(jid)
	if j == nil {
		j = t.create(jid)
	} else {
		t.edit(j)
		t.leave(j, lockSet, scheduledSet, dependsSet)
		t.leaveFailed(j)
		t.leaveCompleted(j)
	}
	t.tagAll(j, r.tags)
	j.klass, j.priority, j.tags = r.klass, r.priority, r.tags
	t.setData(j, r.data)
	j.state, j.worker, j.expires, j.queue = waiting, "", 0, queue
	j.retries, j.remaining, j.time, j.spawnedFrom = r.retries, r.retries, due, r.jid
	t.recordEvent(j, due, "put", queueItem(queue))
	t.wait(j, queue, due)
}
