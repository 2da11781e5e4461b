package sim

import (
	"fmt"
	"strconv"
	"strings"

	"broker/core"
)

// Ordered queues: the model derives the key of each job from its body, and knows which queues are ordered. When a job
// is handed out, it checks every earlier job of the key.

// orderTag is the tag with the keys of ordered queues.
const orderTag = "turn"

// keyOf returns the key of a job with this body; some jobs have none.
func keyOf(body string) string {
	words := strings.Fields(body)
	if len(words) < 2 {
		return ""
	}
	n, err := strconv.Atoi(words[len(words)-1])
	if err != nil || n%4 == 0 {
		return ""
	}
	return strconv.Itoa(n % 4)
}

// tagsOf returns the tags of a job with this body: the body itself, and the key.
func tagsOf(body string) []string {
	if key := keyOf(body); key != "" {
		return []string{body, orderTag + ":" + key}
	}
	return []string{body}
}

func (p *promise) key() string { return keyOf(p.bodies[len(p.bodies)-1].text) }

// orderSetting says whether a queue is ordered, from a commit on.
type orderSetting struct {
	on   bool
	made core.Commit
}

// isOrdered reports whether a queue is ordered now.
func (m *model) isOrdered(queue string) bool {
	past := m.orderSettings[queue]
	return len(past) > 0 && past[len(past)-1].on
}

// recordSharing records the sharing of a queue.
func (w *world) recordSharing(op *core.ShareQueue, r core.Reply) {
	if r.Kind != core.Accepted {
		return
	}
	q := op.Sharing.Queue
	if past := w.model.orderSettings[q]; len(past) == 0 {
		w.model.orderSettings[q] = []orderSetting{{made: 1}}
	}
	w.model.orderSettings[q] = append(w.model.orderSettings[q],
		orderSetting{on: op.Sharing.Ordered, made: w.commitOf(r, true)})
}

// orderSome makes queues ordered at the start of half of the lives, because random acts rarely do.
func (w *world) orderSome() error {
	for i := range int(w.seed%2) * 3 {
		op := w.orderOp(queueName(i))
		if err := w.do(w.clients[0], op, op.Tag, func(r core.Reply) { w.recordSharing(op, r) }); err != nil {
			return err
		}
	}
	return nil
}

// orderOp makes a queue ordered.
func (w *world) orderOp(queue string) *core.ShareQueue {
	return &core.ShareQueue{
		Tag:     w.newTag(),
		Sharing: core.Sharing{Queue: queue, Key: core.JobKey{Kind: core.KeyTag, Tag: orderTag}, Ordered: true},
	}
}

// earlier lists the earlier unfinished jobs of a job's key in its queue, if the queue is ordered.
func (w *world) earlier(p *promise, queue string) (all []*core.JobInfo) {
	key := p.key()
	if key == "" || !w.model.isOrdered(queue) {
		return nil
	}
	for _, seq := range w.model.seqs {
		o := w.model.jobs[seq]
		if seq >= p.seq || o.key() != key {
			continue
		}
		if i := w.look(seq); i != nil && i.State.Unfinished() && i.Queue == queue {
			all = append(all, i)
		}
	}
	return all
}

// inOrder checks that a job was not handed out before an earlier job of its key. Earlier jobs do not count if the same
// request leased them, or if a policy may have just moved them here.
func (w *world) inOrder(p *promise, queue string, tag uint64) error {
	for _, i := range w.earlier(p, queue) {
		o := w.model.jobs[i.Seq]
		switch {
		case tag != 0 && o.request == tag && i.State == core.Leased:
		case o.queues[len(o.queues)-1].text != queue && w.model.movedBy(o, queue):
		default:
			return fmt.Errorf("job %d of key %q was handed out before job %d, which is %v", p.seq, p.key(), i.Seq,
				i.State)
		}
	}
	return nil
}

// openIn returns how many ready jobs of a queue may be handed out.
func (w *world) openIn(queue string, ready int) int {
	if !w.model.isOrdered(queue) {
		return ready
	}
	n := 0
	for _, i := range w.ask(&core.ListJobs{Queue: queue, State: core.Ready, Limit: 1000, Brief: true}).Jobs {
		if p := w.model.jobs[i.Seq]; p == nil || len(w.earlier(p, queue)) == 0 {
			n++
		}
	}
	return n
}

// auditOrder compares the turn of a job, as the broker shows it, with the other jobs of its key.
func (w *world) auditOrder() error {
	limited := w.anyLimits()
	for _, seq := range w.model.seqs {
		p, i := w.model.jobs[seq], w.look(seq)
		if i == nil || !i.State.Unfinished() {
			continue
		}
		key, behind := "", len(w.earlier(p, i.Queue))
		if w.model.isOrdered(i.Queue) {
			key = p.key()
		}
		if i.Key != key || i.Behind != behind {
			return fmt.Errorf("job %d of queue %s has key %q and is behind %d, should be %q behind %d", seq, i.Queue,
				i.Key, i.Behind, key, behind)
		}
		if order := i.Reason == core.WaitOrder; order != (behind > 0) && i.State == core.Ready && !limited &&
			i.Reason != core.WaitPaused {
			return fmt.Errorf("job %d is behind %d jobs of its key and waits for %v", seq, behind, i.Reason)
		}
	}
	return nil
}

// orderAfterCrash checks that the order setting of each queue is possible after the crash, and updates the model to
// it.
func (w *world) orderAfterCrash(committed core.Commit) error {
	have := map[string]bool{}
	for _, s := range w.ask(&core.ListLimits{}).Sharings {
		have[s.Queue] = s.Ordered
	}
	for queue, past := range w.model.orderSettings {
		found := false
		for k := len(past) - 1; k >= 0 && !found; k-- {
			if found = past[k].on == have[queue]; past[k].made <= committed {
				break
			}
		}
		if !found {
			return fmt.Errorf("queue %s is ordered: %v, was %+v, commit %d", queue, have[queue], past, committed)
		}
		w.model.orderSettings[queue] = []orderSetting{{on: have[queue], made: 1}}
	}
	return nil
}
