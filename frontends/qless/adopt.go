package qless

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"broker/core"
)

// syncJob updates one job of the model to its state in the broker.
func (t *tx) syncJob(n *found) {
	j := t.jobOf(n)
	switch {
	case j == nil && n.info == nil:
		return
	case j == nil:
		if j = t.adopt(n); j == nil {
			return
		}
	case n.info == nil:
		t.ended(j, n.end)
		return
	}
	t.syncFields(j, n)
	i := n.info
	switch i.State {
	case core.Ready:
		t.syncReady(j)
	case core.Scheduled, core.Retrying:
		t.syncScheduled(j, i)
	case core.Blocked:
		if j.state != depends {
			t.leaveAll(j)
			t.enter(j, dependsSet, j.queue, t.now)
			j.state, j.worker, j.expires = depends, "", 0
		}
	case core.Leased:
		t.syncLease(j, i)
	case core.Dead:
		if j.state != failed {
			message := ""
			if i.Failure != nil {
				message = i.Failure.Message
			}
			t.failForeign(j, failureName(i), message)
		}
	case core.Done, core.Gone:
	}
}

// jobOf returns the job of the model for n. A job that the broker has removed is no longer in bySeq; jobOf searches the
// touched jobs for it.
func (t *tx) jobOf(n *found) *job {
	if j := t.m.jobs.bySeq(n.seq); j != nil || n.info != nil {
		return j
	}
	for _, j := range t.touched {
		if t.before[j].broker.seq == n.seq {
			return j
		}
	}
	return nil
}

// adopt adds a job to the model that a client of another protocol has submitted. It returns nil if the job is in
// another name space.
func (t *tx) adopt(n *found) *job {
	i := n.info
	name, ok := strings.CutPrefix(i.Queue, t.front.opts.Namespace)
	if !ok || i.Job == nil {
		return nil
	}
	jid := own(i.Job.Identity()) // the table keeps it, and it is part of the job's record
	j := t.m.jobs.get(jid)
	if j == nil {
		j = t.create(jid)
		j.state = waiting
		j.foreign = i.Job.Origin != core.Qless
		j.retries, j.remaining, j.unread = 5, 5, true
		j.queue, j.time = name, seconds(i.CreatedAt)
		t.recordEvent(j, j.time, "put", queueItem(name))
	} else {
		t.edit(j)
		if j.state == complete && i.Job.Origin != core.Qless {
			t.leaveCompleted(j)
			j.queue, j.state, j.unread, j.foreign = name, waiting, true, true
		}
	}
	j.klass, j.priority = i.Type, float64(i.Priority)
	for _, tag := range i.Tags {
		if !slices.Contains(j.tags, tag) {
			j.tags = with(j.tags, tag)
			t.setIn(t.m.tags, tag, j.jid, j.time)
			j.tagged = append(slices.Clip(j.tagged), tagTime{tag, j.time})
		}
	}
	j.broker = brokerJob{
		seq: n.seq, state: brokerState(i.State), queue: i.Queue, readyAt: i.ReadyAt, priority: i.Priority,
	}
	if i.State == core.Leased {
		j.broker.leased, j.broker.epoch = true, i.Epoch
	}
	assign(t, t.m.jobs.jids, n.seq, j.jid)
	if i.State == core.Ready && !j.places[waitingSet].in && j.state == waiting {
		t.wait(j, name, seconds(i.ReadyAt))
	}
	t.seeQueue(name)
	t.markSynced(j)
	return j
}

// markSynced records that the fields of a job are the same in the broker, so that the commit does not send them.
func (t *tx) markSynced(j *job) {
	was := t.before[j]
	was.klass, was.priority, was.tags, was.data, was.unread = j.klass, j.priority, j.tags, j.data, j.unread
	t.before[j] = was
}

// syncFields updates the queue and the priority of a job from the broker.
func (t *tx) syncFields(j *job, n *found) {
	i := n.info
	t.edit(j)
	if name, ok := strings.CutPrefix(i.Queue, t.front.opts.Namespace); ok && t.before[j].broker.queue != "" &&
		t.before[j].broker.queue != i.Queue {
		for kind, p := range j.places {
			if p.in && p.queue != name {
				t.enter(j, setKind(kind), name, p.score)
			}
		}
		j.queue = name
		t.seeQueue(name)
	}
	if j.broker.priority != i.Priority {
		j.priority, j.broker.priority = float64(i.Priority), i.Priority
		if p := j.places[waitingSet]; p.in && j.state == waiting {
			t.wait(j, p.queue, t.now)
		}
	}
	t.markSynced(j)
}

// syncReady handles a job that is ready in the broker.
func (t *tx) syncReady(j *job) {
	switch j.state {
	case running:
		if !t.hadForeignWorker(j) {
			return // Tick has released the lease; only the now of a caller can end the lock
		}
		t.leaveAll(j)
	case depends:
		t.unlink(j, j.dependencies)
		t.leave(j, dependsSet)
	case failed:
		t.leaveFailed(j)
		j.remaining = j.retries
	case scheduled:
		if p := j.places[scheduledSet]; p.in && p.score <= t.now {
			return // due by the clock, but for Qless clients only when the now of a caller is late enough
		}
		t.leave(j, scheduledSet)
	default:
		return
	}
	t.wait(j, j.queue, t.now)
	j.state, j.worker, j.expires = waiting, "", 0
}

// hadForeignWorker reports whether a worker of another protocol was running the job.
func (t *tx) hadForeignWorker(j *job) bool {
	was := t.before[j]
	return was.state == running && was.broker.foreignWorker
}

// leaveAll removes a job from the lists of all states.
func (t *tx) leaveAll(j *job) {
	t.leave(j, waitingSet, lockSet, scheduledSet, dependsSet)
	if j.worker != "" {
		t.unhold(j, j.worker)
	}
	t.leaveFailed(j)
}

// syncScheduled handles a job that the broker has scheduled, or that waits for its next attempt.
func (t *tx) syncScheduled(j *job, i *core.JobInfo) {
	switch {
	case j.places[scheduledSet].in && instant(j.places[scheduledSet].score) == i.ReadyAt:
		return
	case j.state == depends && (i.ReadyAt >= never || len(j.dependencies) > 0):
		return
	case j.state == running && !t.hadForeignWorker(j) && t.before[j].broker.state == running &&
		i.State == core.Scheduled:
		return
	}
	if i.State == core.Retrying && j.state == running {
		t.recordEvent(j, t.now, "failed", failedItem(j.worker, failureName(i)))
	}
	t.leaveAll(j)
	t.enter(j, scheduledSet, j.queue, seconds(i.ReadyAt))
	j.state, j.worker, j.expires = scheduled, "", 0
}

// failureName is the group of a failed job.
func failureName(i *core.JobInfo) string {
	typ := ""
	if i.Failure != nil {
		typ = i.Failure.Type
	}
	return cmp.Or(i.FailureGroup, typ, "failed")
}

// syncLease handles a job that is leased in the broker.
func (t *tx) syncLease(j *job, i *core.JobInfo) {
	was := t.before[j].broker
	if j.state == running && was.leased && was.epoch == i.Epoch {
		return
	}
	worker := i.Worker
	if worker == "" {
		worker = "another protocol"
	}
	j.broker.worker, j.broker.foreignWorker = worker, true
	until := seconds(i.LeaseUntil)
	if i.LeaseUntil == 0 {
		until = seconds(never)
	}
	if j.state == running && j.worker != "" {
		t.unhold(j, j.worker)
		t.lockLost(j, j.worker)
	}
	t.leave(j, waitingSet, lockSet, scheduledSet, dependsSet)
	t.give(j, j.queue, worker, until)
}

// failForeign handles a job that has finally failed in the broker.
func (t *tx) failForeign(j *job, group, message string) {
	worker := j.worker
	t.leaveAll(j)
	t.failJob(j, worker, group, message)
}

// ended handles a job that the broker has removed.
func (t *tx) ended(j *job, end *core.Event) {
	switch {
	case j.state == complete || j.gone:
	case j.foreign && !j.hasDocument:
		t.untagQuietly(j)
		for _, d := range j.dependents {
			if on := t.m.jobs.get(d); on != nil {
				t.unlink(on, []string{j.jid})
				if len(on.dependencies) == 0 && on.state == depends {
					t.stopWaiting(on)
				}
			}
		}
		t.remove(j)
	case end != nil && (end.Kind == core.EventCancelled || end.Kind == core.EventExpired):
		t.cancelOne(j.jid)
	case j.state == failed:
	case end != nil && end.Kind == core.EventFailed:
		t.failForeign(j, cmp.Or(end.Detail, "failed"), "")
	default:
		queue := j.queue
		worker := j.worker
		t.endRun(j, worker, queue)
		t.leave(j, dependsSet)
		t.finish(j, queue)
	}
}

// untagQuietly removes a job from the lists of its tags without changing the tag counts. It is for jobs that were never
// counted.
func (t *tx) untagQuietly(j *job) {
	for _, g := range j.tagged {
		t.unset(t.m.tags, g.tag, j.jid)
	}
	j.tagged = nil
}

// readData converts the body of a job from another protocol to JSON data. JSON objects and lists stay as they are.
// Other text becomes a string, and other bytes become a string in base64.
func (f *Frontend) readData(j *job) {
	if !j.unread {
		return
	}
	var body []byte
	if r := f.one(&core.Inspect{Ref: core.Ref{Seq: j.broker.seq}}); r.Job != nil {
		body = r.Job.Body
	}
	j.data, j.unread = dataOf(body), false
}

func dataOf(body []byte) string {
	text := strings.TrimSpace(string(body))
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		if _, err := decode(text); err == nil {
			return text
		}
	}
	if utf8.Valid(body) {
		return string(appendText(nil, string(body)))
	}
	return `"` + base64.StdEncoding.EncodeToString(body) + `"`
}
