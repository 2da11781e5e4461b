package qless

import (
	"math"
	"slices"
)

// recurringJob is the definition of a recurring job.
type recurringJob struct {
	jid, klass, queue, data                     string
	priority, interval, retries, count, backlog float64
	tags                                        []string
	next                                        float64 // due time of the next job
}

// json returns the definition in the form that clients see.
func (r *recurringJob) json() (any, error) {
	return encode(object(
		"jid", r.jid, "klass", r.klass, "state", "recur", "queue", r.queue, "priority", r.priority, "interval",
		r.interval,
		"retries", r.retries, "count", r.count, "data", r.data, "tags", r.tags, "backlog", r.backlog,
	))
}

// editRecurring replaces a definition by a copy and returns the copy.
func (t *tx) editRecurring(r *recurringJob) *recurringJob {
	next := *r
	t.putRecurring(&next)
	return &next
}

func (t *tx) putRecurring(r *recurringJob) {
	assign(t, t.m.recurring, r.jid, r)
	t.note(recurDocs + r.jid)
}

// dueAt sets the due time of the next job of a definition.
func (t *tx) dueAt(r *recurringJob, at float64) {
	r.next = at
	t.add(t.list(r.queue, recurringSet), r.jid, at)
}

// recur queue jid klass data interval secs offset [name value]...
func recur(t *tx, in *input) (any, error) {
	queue := in.queue(0)
	jid := in.need(1, `RecurringJob On(): Arg "jid" missing`)
	klass := in.need(2, `RecurringJob On(): Arg "klass" missing`)
	spec := in.need(4, `RecurringJob On(): Arg "spec" missing`)
	data, _ := in.json(3, `RecurringJob On(): Arg "data" not JSON: `)
	if spec != "interval" {
		in.refuse(fault(`Recur(): schedule type "%s" unknown`, spec))
	}
	r := &recurringJob{jid: jid, klass: klass, queue: queue, data: data}
	offset := r.readSchedule(in)
	if in.err != nil {
		return nil, in.err
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

// readSchedule reads the interval, the offset and the options.
func (r *recurringJob) readSchedule(in *input) (offset float64) {
	r.interval = in.number(5, `Recur(): Arg "interval" not a number: `)
	offset = in.number(6, `Recur(): Arg "offset" not a number: `)
	if r.interval <= 0 {
		in.refuse(fault(`Recur(): Arg "interval" must be greater than 0`))
	}
	o := in.pairs(7)
	r.tags = in.optionalList(o, "tags", nil, `Recur(): Arg "tags" must be JSON string array: `)
	r.priority = in.optionalNumber(o, "priority", 0, `Recur(): Arg "priority" not a number: `)
	r.retries = in.optionalNumber(o, "retries", 0, `Recur(): Arg "retries" not a number: `)
	r.backlog = in.optionalNumber(o, "backlog", 0, `Recur(): Arg "backlog" not a number: `)
	in.finite(r.interval, offset, r.priority, r.retries, r.backlog)
	return offset
}

// dropDue removes a definition from the list of its queue.
func (t *tx) dropDue(r *recurringJob) {
	t.drop(t.list(r.queue, recurringSet), r.jid)
	t.queues = append(t.queues, r.queue)
}

// unrecur jid
func unrecur(t *tx, in *input) (any, error) {
	jid := in.recurring()
	if in.err != nil {
		return nil, in.err
	}
	if r := t.m.recurring[jid]; r != nil {
		t.dropDue(r)
		erase(t, t.m.recurring, jid)
		t.note(recurDocs + jid)
	}
	return true, nil
}

func (in *input) recurring() (jid string) { return in.need(0, "Recurring(): no jid provided") }

// recurGet jid
func recurGet(t *tx, in *input) (any, error) {
	jid := in.recurring()
	if in.err != nil {
		return nil, in.err
	}
	if r := t.m.recurring[jid]; r != nil {
		return r.json()
	}
	return nil, nil
}

// recurUpdate jid [key value]...
func recurUpdate(t *tx, in *input) (any, error) {
	jid := in.recurring()
	if in.err != nil {
		return nil, in.err
	}
	r := t.m.recurring[jid]
	if r == nil {
		return nil, fault("Recur(): No recurring job %s", jid)
	}
	r = t.editRecurring(r)
	for i := 1; i < len(in.args); i += 2 {
		key := in.args[i]
		value := in.need(i+1, "No value provided for "+key)
		if in.err == nil {
			t.updateRecurring(r, in, key, value)
		}
	}
	return true, in.err
}

// updateRecurring changes one member of a definition.
func (t *tx) updateRecurring(r *recurringJob, in *input, key, value string) {
	number := func(text string) float64 {
		f := in.parseNumber(value, text)
		in.finite(f)
		return f
	}
	must := `Recur(): Arg "` + key + `" must be a number: `
	switch key {
	case "priority":
		r.priority = number(must)
	case "retries":
		r.retries = number(must)
	case "interval":
		was := r.interval
		if r.interval = number(must); in.err == nil {
			t.dueAt(r, r.next+r.interval-was)
		}
	case "backlog":
		r.backlog = number(`Recur(): Arg "backlog" not a number: `)
	case "data":
		in.decode(value, `Recur(): Arg "data" is not JSON-encoded: `)
		r.data = value
	case "klass":
		r.klass = value
	case "queue":
		t.dropDue(r)
		r.queue = value
		t.dueAt(r, r.next)
		t.seeQueue(value)
	default:
		in.refuse(fault(`Recur(): Unrecognized option "%s"`, key))
	}
}

// recurTag jid tag...
func recurTag(t *tx, in *input) (any, error) {
	jid := in.recurring()
	if in.err != nil {
		return nil, in.err
	}
	r := t.m.recurring[jid]
	if r == nil {
		return nil, fault("Tag(): Job %s does not exist", jid)
	}
	had := stringSet(r.tags)
	r = t.editRecurring(r)
	r.tags = slices.Clip(r.tags)
	for _, tag := range in.from(1) {
		if !had[tag] {
			r.tags = append(r.tags, tag)
		}
	}
	return encode(r.tags)
}

// recurUntag jid tag...
func recurUntag(t *tx, in *input) (any, error) {
	jid := in.recurring()
	if in.err != nil {
		return nil, in.err
	}
	r := t.m.recurring[jid]
	if r == nil {
		return nil, fault("Untag(): Job %s does not exist", jid)
	}
	r = t.editRecurring(r)
	r.tags = withoutAll(r.tags, in.from(1))
	return encode(r.tags)
}

// spawnDue creates the due jobs of recurring definitions, at most count. It creates all missed jobs, unless the option
// backlog limits them.
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
	t.tagJob(j, r.tags)
	j.klass, j.priority, j.tags = r.klass, r.priority, r.tags
	t.setData(j, r.data)
	j.state, j.worker, j.expires, j.queue = waiting, "", 0, queue
	j.retries, j.remaining, j.time, j.spawnedFrom = r.retries, r.retries, due, r.jid
	t.recordEvent(j, due, "put", queueItem(queue))
	t.wait(j, queue, due)
}
