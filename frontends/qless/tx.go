package qless

import (
	"math"
	"slices"

	"broker/core"
)

// tx is one command: all that it changes, or nothing. The model is changed at once, with a note of how to take that back;
// the documents, the operations on the broker's jobs and the messages follow when the command has succeeded.
type tx struct {
	f   *Frontend
	m   *model
	now float64

	undo     []func()
	before   map[*job]job // jobs that it changes, as they were
	newData  map[*job]bool
	touched  []*job   // in the order of their first change
	names    []string // of documents, other than those of jobs, that it changes
	named    map[string]bool
	queues   []string // whose lists have lost something
	messages []message
	pauses   []core.Op
	syncing  bool // it takes over what happened in the broker: the broker's jobs are not changed
}

// message is published when the command is done.
type message struct{ channel, payload string }

func (f *Frontend) newTx(now float64) *tx {
	return &tx{f: f, m: f.model, now: now, before: map[*job]job{}, named: map[string]bool{}, newData: map[*job]bool{}}
}

// rollback takes everything back.
func (t *tx) rollback() {
	for i := len(t.undo) - 1; i >= 0; i-- {
		t.undo[i]()
	}
	t.dropEmpty()
}

// edit notes that a job is about to change.
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

// setData gives a job data of its own, in place of what can be read from the broker.
func (t *tx) setData(j *job, data string) {
	t.edit(j)
	if j.unread || j.data != data {
		t.newData[j] = true
	}
	j.data, j.unread = data, false
}

// note says that the document of a name changes.
func (t *tx) note(name string) {
	if !t.named[name] {
		t.named[name] = true
		t.names = append(t.names, name)
	}
}

// create makes a job of which nothing is known.
func (t *tx) create(jid string) *job {
	j := &job{jid: jid}
	t.edit(j)
	t.m.jobs.put(j)
	t.undo = append(t.undo, func() { t.m.jobs.remove(jid) })
	return j
}

// remove forgets a job, with all its places in lists.
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

// add puts a name into a set.
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

// drop takes a name out of a set.
func (t *tx) drop(z *sortedSet, name string) bool {
	old, had := z.score(name)
	if had {
		z.remove(name)
		t.undo = append(t.undo, func() { z.add(name, old) })
	}
	return had
}

// setIn puts a name into one of many sets, which is made if need be.
func (t *tx) setIn(sets map[string]*sortedSet, set, name string, score float64) {
	z := sets[set]
	if z == nil {
		z, set = &sortedSet{}, own(set)
		sets[set] = z
		t.undo = append(t.undo, func() { delete(sets, set) })
	}
	t.add(z, name, score)
}

// unset takes a name out of one of many sets; one that is empty then is dropped.
func (t *tx) unset(sets map[string]*sortedSet, set, name string) {
	z := sets[set]
	if z == nil || !t.drop(z, name) || z.len() > 0 {
		return
	}
	delete(sets, set)
	t.undo = append(t.undo, func() { sets[set] = z })
}

// enter puts a job into a list of a queue; it is in one list of a kind at most.
func (t *tx) enter(j *job, kind setKind, queue string, score float64) {
	t.edit(j)
	t.leave(j, kind)
	z, m := t.list(queue, kind), member{score, j.jid}
	z.insert(m)
	t.undo = append(t.undo, func() { z.delete(m) })
	j.places[kind] = place{queue: queue, score: score, in: true}
}

// leave takes a job out of its lists of these kinds.
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

// list is a list of a queue, for changing.
func (t *tx) list(name string, kind setKind) *sortedSet {
	q := t.m.queues[name]
	if q == nil {
		q = &queue{}
		t.m.queues[own(name)] = q
		t.queues = append(t.queues, name)
	}
	return &q.sets[kind]
}

// dropEmpty forgets queues that have nothing left.
func (t *tx) dropEmpty() {
	for _, name := range t.queues {
		if q := t.m.queues[name]; q != nil && q.empty() {
			delete(t.m.queues, name)
		}
	}
}

// wait puts a job among the waiting ones of a queue: higher priorities first, then older jobs.
func (t *tx) wait(j *job, queue string, at float64) {
	t.enter(j, waitingSet, queue, j.priority-at/1e10)
}

// stallFirst puts a job before all waiting ones.
func (t *tx) stallFirst(j *job) { t.enter(j, waitingSet, j.queue, math.Inf(1)) }

// hold puts a job into the list of a worker.
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

// unhold takes a job out of the list of a worker.
func (t *tx) unhold(j *job, worker string) {
	i := slices.IndexFunc(j.holders, func(h holder) bool { return h.worker == worker })
	if i < 0 {
		return
	}
	t.edit(j)
	t.unset(t.m.held, worker, j.jid)
	j.holders = slices.Concat(j.holders[:i], j.holders[i+1:])
}

// seeQueue notes the first use of a queue.
func (t *tx) seeQueue(name string) {
	if !t.m.seen.has(name) {
		t.add(&t.m.seen, name, t.now)
		t.note(queueDoc(name))
	}
}

// seeWorker notes that a worker is alive.
func (t *tx) seeWorker(name string) {
	t.add(&t.m.workers, name, t.now)
	t.note(workerDoc(name))
}

// publish sends a message once the command is done.
func (t *tx) publish(channel, payload string) {
	t.messages = append(t.messages, message{"ql:" + channel, payload})
}

// tell publishes the jid of a job on a channel if it is tracked.
func (t *tx) tell(channel string, j *job) {
	if t.m.tracked.has(j.jid) {
		t.publish(channel, j.jid)
	}
}

var lockLostShape = shapeOf("jid", "event", "worker")

// lockLost tells a worker and the log that a worker has lost a job.
func (t *tx) lockLost(j *job, worker string) {
	text := lockLostShape.json(members{"jid": j.jid, "event": "lock_lost", "worker": worker})
	t.publish("w:"+worker, text)
	t.publish("log", text)
}

// recordEvent adds a line to a job's history; the first line and the newest ones are kept.
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

func queueItem(queue string) string { return `{"q":` + string(appendText(nil, queue)) + `}` }

func workerItem(worker string) string { return `{"worker":` + string(appendText(nil, worker)) + `}` }
func groupItem(group string) string   { return `{"group":` + string(appendText(nil, group)) + `}` }

var failedItemShape = shapeOf("worker", "group")

func failedItem(worker, group string) string {
	return failedItemShape.json(members{"worker": worker, "group": group})
}
