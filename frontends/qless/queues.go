package qless

import (
	"maps"
	"slices"

	"broker/core"
)

func sortedKeys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }

// queues [queue]
func queues(t *tx, in *input) (any, error) {
	if name, given := in.get(0); given {
		return encode(t.counts(name))
	}
	all := newTable(0)
	for _, name := range t.m.seen.slice(0, -1, false) {
		all.array = append(all.array, t.counts(name))
	}
	return encode(all)
}

// counts returns the job counts of a queue. It makes due scheduled jobs ready first.
func (t *tx) counts(name string) *table {
	expired := t.m.set(name, lockSet).count(0, t.now)
	t.promoteScheduled(name, -1)
	size := func(kind setKind) float64 { return float64(t.m.set(name, kind).len()) }
	return object(
		"name", name, "waiting", size(waitingSet), "stalled", float64(expired), "running",
		size(lockSet)-float64(expired),
		"scheduled", size(scheduledSet), "depends", size(dependsSet), "recurring", size(recurringSet), "paused",
		t.m.paused[name],
	)
}

// length queue
func length(t *tx, in *input) (any, error) {
	name := in.queue(0)
	if in.err != nil {
		return nil, in.err
	}
	n := t.m.set(name, lockSet).len() + t.m.set(name, waitingSet).len() + t.m.set(name, scheduledSet).len()
	return float64(n), nil
}

// pause queue...
func pause(t *tx, in *input) (any, error) { return t.setPaused(in.args, true) }

// unpause queue...
func unpause(t *tx, in *input) (any, error) { return t.setPaused(in.args, false) }

func (t *tx) setPaused(names []string, paused bool) (any, error) {
	if len(names) == 0 {
		return nil, errArgs
	}
	for _, name := range names {
		t.markPaused(name, paused)
		t.pauses = append(t.pauses, &core.PauseQueue{Queue: t.front.coreQueue(name), Paused: paused})
	}
	return nil, nil
}

func (t *tx) markPaused(name string, paused bool) {
	if t.m.paused[name] == paused {
		return
	}
	if paused {
		assign(t, t.m.paused, name, true)
	} else {
		erase(t, t.m.paused, name)
	}
	t.note(queueDocs + name)
}

// forgetQueues queue...
func forgetQueues(t *tx, in *input) (any, error) {
	if len(in.args) == 0 {
		return nil, errArgs
	}
	for _, name := range in.args {
		if t.drop(&t.m.seen, name) {
			t.note(queueDocs + name)
		}
	}
	return nil, nil
}

// jobs complete [offset [count]], jobs state queue [offset [count]]
func jobs(t *tx, in *input) (any, error) {
	state := in.need(0, `Jobs(): Arg "state" missing`)
	name, rest := "", 1
	if state != complete {
		name, rest = in.need(1, `Jobs(): Arg "queue" missing`), 2
	}
	offset := in.numberOr(rest, 0, `Jobs(): Arg "offset" not a number: `)
	count := in.numberOr(rest+1, 25, `Jobs(): Arg "count" not a number: `)
	if in.err != nil {
		return nil, in.err
	}
	first, n := in.page(offset, count)
	last := first + n - 1
	var jids []string
	switch state {
	case complete:
		jids = t.m.completed.slice(first, last, true)
	case running:
		jids = t.m.set(name, lockSet).between(t.now, plusInf, first, n)
	case stalled:
		jids = t.m.set(name, lockSet).between(minusInf, t.now, first, n)
	case scheduled:
		t.promoteScheduled(name, -1)
		jids = t.m.set(name, scheduledSet).slice(first, last, false)
	case depends:
		jids = t.m.set(name, dependsSet).slice(first, last, false)
	case "recurring":
		jids = t.m.set(name, recurringSet).between(0, plusInf, first, n)
	default:
		return nil, fault(`Jobs(): Unknown type "%s"`, state)
	}
	return jids, in.err
}

// workersCommand [worker]
func workersCommand(t *tx, in *input) (any, error) {
	age := t.m.config.numberOr("max-worker-age", 86400)
	for _, name := range t.m.workers.between(0, t.now-age, 0, -1) {
		for _, jid := range setOf(t.m.held, name).slice(0, -1, false) {
			t.unhold(t.m.jobs.get(jid), name)
		}
		t.drop(&t.m.workers, name)
		t.note(workDocs + name)
	}
	const horizon = 8640000
	if name, given := in.get(0); given {
		z := setOf(t.m.held, name)
		return encode(object(
			"jobs", z.betweenBack(t.now+horizon, t.now, 0, -1), "stalled", z.betweenBack(t.now, 0, 0, -1),
		))
	}
	all := newTable(0)
	for _, name := range t.m.workers.slice(0, -1, true) {
		z := setOf(t.m.held, name)
		all.array = append(all.array, object(
			"name", name, "jobs", float64(z.count(t.now, t.now+horizon)), "stalled", float64(z.count(0, t.now)),
		))
	}
	return encode(all)
}

// deregister worker...
func deregister(t *tx, in *input) (any, error) {
	if len(in.args) == 0 {
		return nil, errArgs
	}
	for _, name := range in.args {
		if t.drop(&t.m.workers, name) {
			t.note(workDocs + name)
		}
	}
	return nil, nil
}
