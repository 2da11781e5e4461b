package qless

import (
	"errors"

	"broker/core"
)

// maxAttempts limits the attempts of a command whose jobs are changed by clients of other protocols at the same time.
const maxAttempts = 8

// call runs one operation of the script, inside enter. When it returns, its messages are queued for the subscribers.
func (f *Frontend) call(argv []string) (reply any, err error) {
	f.calls.Add(1)
	c, now, a, err := lookUp(argv)
	if err != nil {
		return nil, err
	}
	for range maxAttempts {
		f.sync()
		t := f.newTx(now)
		if reply, err = c.run(t, &input{args: a}); err != nil {
			t.rollback()
			break
		}
		if err = t.commitChanges(); err == nil {
			f.publishAll(t.messages)
			break
		}
		t.rollback()
		if errors.Is(err, core.ErrDraining) && argv[0] == "pop" {
			reply, err = "{}", nil
			break
		}
		if !conflicts(err) {
			break
		}
		for _, j := range t.touched {
			f.markDirty(j.broker.seq)
		}
	}
	return reply, err
}

// commitChanges calls commit, unless the command has changed nothing.
func (t *tx) commitChanges() error {
	if len(t.touched) == 0 && len(t.names) == 0 && len(t.pauses) == 0 {
		t.front.model.lastNow = max(t.front.model.lastNow, t.now)
		t.dropEmpty()
		return nil
	}
	return t.commit()
}

// flush removes everything, inside enter.
func (f *Frontend) flush() error {
	f.sync()
	f.model.jobs.pack()
	t := f.newTx(f.model.lastNow)
	for _, jid := range f.model.jobs.all() {
		t.remove(f.model.jobs.get(jid))
	}
	m := f.model
	for _, name := range sortedKeys(m.recurring) {
		t.note(recurDocs + name)
	}
	for key := range m.stats {
		t.note(statDoc(key))
	}
	for name := range m.paused {
		t.note(queueDocs + name)
		t.pauses = append(t.pauses, &core.PauseQueue{Queue: f.coreQueue(name)})
	}
	for _, z := range []struct {
		set  *sortedSet
		docs string
	}{{&m.seen, queueDocs}, {&m.workers, workDocs}, {&m.tagCounts, tagDocs}, {&m.tracked, trackDocs}} {
		for _, name := range z.set.slice(0, -1, false) {
			t.note(z.docs + name)
		}
	}
	t.note(configDoc)
	empty := newModel()
	empty.jobs = m.jobs
	t.m = empty
	if err := t.commit(); err != nil {
		t.m = m
		t.rollback()
		return err
	}
	f.model = newModel()
	f.leases = sortedSet{}
	return nil
}
