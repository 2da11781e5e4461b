package qless

import (
	"math"
	"slices"

	"broker/core"
)

// tx is the transaction of one command, which changes all or nothing. It changes the model at once and records how to
// undo each change. When the command has succeeded, the documents, the operations on the broker's jobs and the messages
// follow.
type tx struct {
	front *Frontend
	m     *model
	now   float64

	undo     []func()
	before   map[*job]job // the old values of the changed jobs
	newData  map[*job]bool
	touched  []*job   // changed jobs, in the order of their first change
	names    []string // names of changed documents, except documents of jobs
	named    map[string]bool
	queues   []string // queues whose lists have lost a member
	messages []message
	pauses   []core.Op
	syncing  bool // it applies changes from the broker and does not change the broker's jobs
}

// message is published after the command has succeeded.
type message struct{ channel, payload string }

func (f *Frontend) newTx(now float64) *tx {
	return &tx{
		front: f, m: f.model, now: now, before: map[*job]job{}, named: map[string]bool{}, newData: map[*job]bool{},
	}
}

// rollback undoes all changes.
func (t *tx) rollback() {
	for i := len(t.undo) - 1; i >= 0; i-- {
		t.undo[i]()
	}
	t.dropEmpty()
}

// edit must be called before a job is changed.
func (t *tx) edit(j *job) {
	if _, known := t.before[j]; known {
		return
	}
	was := *j
	t.before[j] = was
	t.touched = append(t.touched, j)
	t.undo = append(t.undo, func() { *j = was })
	j.changed = true
}

// setData sets the data of a job, in place of the data in the broker.
func (t *tx) setData(j *job, data string) {
	t.edit(j)
	if j.unread || j.data != data {
		t.newData[j] = true
	}
	j.data, j.unread = data, false
}

// note records that the document with this name changes.
func (t *tx) note(name string) {
	if !t.named[name] {
		t.named[name] = true
		t.names = append(t.names, name)
	}
}

// create adds an empty job.
func (t *tx) create(jid string) *job {
	j := &job{jid: jid}
	t.edit(j)
	t.m.jobs.put(j)
	t.undo = append(t.undo, func() { t.m.jobs.remove(jid) })
	return j
}

// remove removes a job and all its places in lists.
func (t *tx) remove(j *job) {
	t.edit(j)
	t.leave(j, waitingSet, lockSet, scheduledSet, dependsSet)
	for _, h := range j.holders {
		t.unset(t.m.held, h.worker, j.jid)
	}
	for _, g := range j.tagged {
		t.unset(t.m.tags, g.tag, j.jid)
	}
	t.leaveFailed(j)
	t.leaveCompleted(j)
	j.holders, j.tagged, j.gone = nil, nil, true
	t.m.jobs.remove(j.jid)
	t.undo = append(t.undo, func() { t.m.jobs.put(j) })
}

// assign sets a key in a map of the model.
func assign[K comparable, V any](t *tx, in map[K]V, key K, value V) {
	keep(t, in, key)
	in[key] = value
}

// erase removes a key from a map of the model.
func erase[K comparable, V any](t *tx, in map[K]V, key K) {
	keep(t, in, key)
	delete(in, key)
}

// keep restores the present state of a key if the changes are undone.
func keep[K comparable, V any](t *tx, in map[K]V, key K) {
	was, had := in[key]
	t.undo = append(t.undo, func() {
		if had {
			in[key] = was
		} else {
			delete(in, key)
		}
	})
}

// add adds a name to a set.
func (t *tx) add(z *sortedSet, name string, score float64) {
	old, had := z.score(name)
	z.add(name, score)
	t.undo = append(t.undo, func() {
		if had {
			z.add(name, old)
		} else {
			z.remove(name)
		}
	})
}

// drop removes a name from a set.
func (t *tx) drop(z *sortedSet, name string) bool {
	old, had := z.score(name)
	if had {
		z.remove(name)
		t.undo = append(t.undo, func() { z.add(name, old) })
	}
	return had
}

// setIn adds a name to one of many sets, and creates the set if it does not exist.
func (t *tx) setIn(sets map[string]*sortedSet, set, name string, score float64) {
	z := sets[set]
	if z == nil {
		z = &sortedSet{}
		assign(t, sets, own(set), z)
	}
	t.add(z, name, score)
}

// unset removes a name from one of many sets, and drops the set if it is empty.
func (t *tx) unset(sets map[string]*sortedSet, set, name string) {
	z := sets[set]
	if z == nil || !t.drop(z, name) || z.len() > 0 {
		return
	}
	erase(t, sets, set)
}

// enter adds a job to a list of a queue. A job is in at most one list of each kind.
func (t *tx) enter(j *job, kind setKind, queue string, score float64) {
	t.edit(j)
	t.leave(j, kind)
	z, m := t.list(queue, kind), member{score, j.jid}
	z.insert(m)
	t.undo = append(t.undo, func() { z.delete(m) })
	j.places[kind] = place{queue: queue, score: score, in: true}
}

// leave removes a job from its lists of these kinds.
func (t *tx) leave(j *job, kinds ...setKind) {
	t.edit(j)
	for _, k := range kinds {
		if p := j.places[k]; p.in {
			z, m := t.list(p.queue, k), member{p.score, j.jid}
			z.delete(m)
			t.undo = append(t.undo, func() { z.insert(m) })
			t.queues = append(t.queues, p.queue)
			j.places[k] = place{}
		}
	}
}

// list returns a list of a queue, for changing.
func (t *tx) list(name string, kind setKind) *sortedSet {
	if t.m.queues[name] == nil {
		t.queues = append(t.queues, name)
	}
	return &t.m.queue(name).sets[kind]
}

// dropEmpty removes queues without any data.
func (t *tx) dropEmpty() {
	for _, name := range t.queues {
		if q := t.m.queues[name]; q != nil && q.empty() {
			delete(t.m.queues, name)
		}
	}
}

// wait adds a job to the waiting list of a queue: higher priorities first, then older jobs.
func (t *tx) wait(j *job, queue string, at float64) {
	t.enter(j, waitingSet, queue, j.priority-at/1e10)
}

// stallFirst puts a job before all waiting jobs.
func (t *tx) stallFirst(j *job) { t.enter(j, waitingSet, j.queue, math.Inf(1)) }

// hold adds a job to the list of a worker.
func (t *tx) hold(j *job, worker string, until float64) {
	t.edit(j)
	t.setIn(t.m.held, worker, j.jid, until)
	i := slices.IndexFunc(j.holders, func(h holder) bool { return h.worker == worker })
	j.holders = slices.Clone(j.holders)
	if i < 0 {
		j.holders = append(j.holders, holder{worker, until})
	} else {
		j.holders[i].until = until
	}
}

// unhold removes a job from the list of a worker.
func (t *tx) unhold(j *job, worker string) {
	i := slices.IndexFunc(j.holders, func(h holder) bool { return h.worker == worker })
	if i < 0 {
		return
	}
	t.edit(j)
	t.unset(t.m.held, worker, j.jid)
	j.holders = slices.Concat(j.holders[:i], j.holders[i+1:])
}

// seeQueue records the first use of a queue.
func (t *tx) seeQueue(name string) {
	if !t.m.seen.has(name) {
		t.add(&t.m.seen, name, t.now)
		t.note(queueDocs + name)
	}
}

// seeWorker records that a worker is alive.
func (t *tx) seeWorker(name string) {
	t.add(&t.m.workers, name, t.now)
	t.note(workDocs + name)
}

// publish queues a message, which is sent after the command has succeeded.
func (t *tx) publish(channel, payload string) {
	t.messages = append(t.messages, message{"ql:" + channel, payload})
}

// publishTracked publishes the jid of a job on a channel, if the job is tracked.
func (t *tx) publishTracked(channel string, j *job) {
	if t.m.tracked.has(j.jid) {
		t.publish(channel, j.jid)
	}
}

// lockLost sends the message that a worker has lost a job, to the worker and the log channel.
func (t *tx) lockLost(j *job, worker string) {
	text := object("jid", j.jid, "event", "lock_lost", "worker", worker).json()
	t.publish("w:"+worker, text)
	t.publish("log", text)
}

// recordEvent adds a line to a job's history. The history keeps the first line and the newest lines.
func (t *tx) recordEvent(j *job, at float64, what, item string) {
	t.edit(j)
	limit := 100.0
	if v, ok := t.m.config.number("max-job-history"); ok {
		limit = v
	}
	if n := int(min(limit, math.MaxInt32)); n > 0 && len(j.history) > 0 {
		first, rest := j.history[0], j.history[1:]
		switch skip := n - 2; {
		case skip < 0:
			rest = rest[min(-skip, len(rest)):]
		case skip > 0 && len(rest) > skip:
			rest = rest[len(rest)-skip:]
		}
		if len(rest) < len(j.history)-1 {
			j.history = append([]entry{first}, rest...)
		}
	}
	j.history = append(slices.Clip(j.history), entry{when: math.Floor(at), what: what, item: item})
}

// Items of history lines.

func queueItem(queue string) string   { return item("q", queue) }
func workerItem(worker string) string { return item("worker", worker) }
func groupItem(group string) string   { return item("group", group) }

func item(key, value string) string { return `{"` + key + `":` + string(appendText(nil, value)) + `}` }

func failedItem(worker, group string) string { return object("worker", worker, "group", group).json() }
