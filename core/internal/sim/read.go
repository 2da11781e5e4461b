package sim

import (
	"fmt"

	"broker/core"
)

// metaName is the name of the meta entry that clients write and read.
const metaName = "sim/entry"

// read reads data that other clients may just have changed, or writes the meta entry.
func (w *world) read() error {
	c, tag := w.anyClient(), w.newTag()
	var op core.Op
	switch w.rng.IntN(11) {
	case 0:
		op = &core.ListJobs{Tag: tag, State: core.States[w.rng.IntN(len(core.States))], Limit: 1 + w.rng.IntN(20)}
	case 1:
		op = &core.ListJobs{Tag: tag, Queue: queueName(w.rng.IntN(4)), State: core.Ready, Limit: 5}
	case 2:
		op = &core.ListQueues{Tag: tag}
	case 3:
		op = &core.InspectQueue{Tag: tag, Queue: queueName(w.rng.IntN(4))}
	case 4:
		if n := len(w.model.numbers); n > 0 {
			op = &core.InspectBatch{Tag: tag, Batch: w.model.numbers[n-1-w.rng.IntN(min(n, 4))]}
		}
	case 5:
		op = &core.ReadMeta{Tag: tag, Name: metaName}
	case 6:
		op = &core.WriteMeta{Tag: tag, Entries: []core.MetaEntry{{Name: metaName, Value: fmt.Append(nil, w.number)}}}
	case 7:
		op = &core.ListLimits{Tag: tag}
	case 9:
		op = &core.LastCommit{Tag: tag}
	case 8:
		op = &core.ListPolicies{Tag: tag, Scope: core.PolicyScope(w.rng.IntN(2))}
	}
	if p := w.anyJob(); op == nil && p != nil {
		op = &core.Inspect{Tag: tag, Ref: core.Ref{Seq: p.seq}}
	}
	if op == nil {
		return nil
	}
	w.note("client %d asks %T", c.id, op)
	before, last := w.newest, core.Commit(0)
	err := w.do(c, op, tag, func(r core.Reply) { last = r.Commit })
	if _, asks := op.(*core.LastCommit); asks && err == nil && last < before && before > w.engine.Committed() {
		err = fmt.Errorf("commit %d makes everything durable, but an earlier reply waits for commit %d", last, before)
	}
	return err
}
