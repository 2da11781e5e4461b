package batch

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"broker/core"
	"broker/core/internal/table"
)

// Refusal is why a job must not join a batch.
func (s *Batches) Refusal(number uint64) error {
	g := s.byNumber[number]
	switch {
	case g == nil:
		return core.ErrNoBatch
	case g.Committed:
		return core.ErrBatchState
	}
	return nil
}

// callbackDue returns the state of a callback that is due. In a batch without this callback, it counts as done.
func (s *Batches) callbackDue(seq uint64) core.CallbackState {
	if s.table.Handle(seq) == 0 {
		return core.CallbackDone
	}
	return core.CallbackEnqueued
}

// releaseCallback releases a callback job, unless a client has already made it ready.
func (s *Batches) releaseCallback(seq uint64) {
	h := s.table.Handle(seq)
	if h == 0 {
		return
	}
	if e := s.table.At(h); e.State == core.Blocked {
		s.table.Touch(h, e)
		s.host.Unblock(h, e)
	}
}

// callbackEnded records the end of a callback. If the callback ended without being done, the batch continues without it
// and cannot succeed.
func (s *Batches) callbackEnded(g *Batch, seq uint64, success bool) {
	s.mutate(g, func() {
		switch seq {
		case g.CompleteJob:
			if !success {
				g.CompleteLost = lostCallback(g.Complete) + 1
			}
			g.Complete, g.CompleteJob = core.CallbackDone, 0
		case g.SuccessJob:
			if !success {
				g.SuccessLost = lostCallback(g.Success) + 1
			}
			g.Success, g.SuccessJob = core.CallbackDone, 0
		default:
			return // it ended before a restart and is kept only for its state
		}
		g.CallbackLost = g.CallbackLost || !success
	})
	s.check(g)
}

// Commit returns the commit that a reply about a batch depends on; nil: a batch that does not exist.
func (s *Batches) Commit(g *Batch) core.Commit {
	if g == nil {
		return s.table.Pending(s.lastRemoval)
	}
	return s.table.Pending(g.changedIn)
}

// Open creates a batch. Its callbacks must be set next.
func (s *Batches) Open(op *core.OpenBatch) *Batch {
	g := &Batch{number: s.table.NextSeq}
	s.table.NextSeq++
	s.table.Reserve()
	g.batchMeta = batchMeta{
		Parent: op.Parent, Description: op.Description, Owner: op.Owner, CreatedAt: s.table.Now, Until: op.OpenUntil,
	}
	if parent := s.byNumber[op.Parent]; parent != nil {
		parent.children.count(g, 1)
	}
	s.add(g)
	s.link(g)
	return g
}

// SetCallbacks sets the callbacks of a batch to the jobs that admit admits.
func (s *Batches) SetCallbacks(g *Batch, admit func() (complete, success uint64)) {
	s.mutate(g, func() { g.CompleteJob, g.SuccessJob = admit() })
}

// Number is the number of a batch.
func (g *Batch) Number() uint64 { return g.number }

// ParentNumber is the batch that a batch is in; zero: none.
func (g *Batch) ParentNumber() uint64 { return g.Parent }

// CallbackJobs are the callbacks of a batch; zero: none.
func (g *Batch) CallbackJobs() [2]uint64 { return [2]uint64{g.CompleteJob, g.SuccessJob} }

// Find returns the batch with a number; nil: there is none.
func (s *Batches) Find(number uint64) *Batch { return s.byNumber[number] }

// Count is how many batches there are.
func (s *Batches) Count() int { return len(s.byNumber) }

// HasChanges reports whether the open commit batch has changes of batches.
func (s *Batches) HasChanges() bool { return len(s.dirty) > 0 }

// Oldest returns the oldest batch, or nil if its number is not lower than below.
func (s *Batches) Oldest(below uint64) *Batch {
	if g := s.first; g != nil && g.number < below {
		return g
	}
	return nil
}

// Close commits a batch, or opens it again.
func (s *Batches) Close(g *Batch, reopen bool) {
	s.mutate(g, func() {
		switch {
		case !reopen:
			g.Committed = true
			s.setDeadline(g, 0)
		case g.Committed:
			g.Committed, g.Reopened = false, true
			s.setDeadline(g, s.table.Now.Add(reopenedFor))
		}
	})
	s.check(g)
}

// Expire ends a batch that was not committed in time, or that finished long enough ago. For a reopened batch, it
// commits the batch again and returns nil. Otherwise the caller ends the callbacks that never ran, then calls Ended.
func (s *Batches) Expire(slot uint32) *Batch {
	g := s.slots.At(slot)
	g.deadline = 0
	if g.Reopened && !g.Committed {
		s.mutate(g, func() { g.Committed, g.Until = true, 0 })
		s.check(g)
		return nil
	}
	s.Forget(g)
	return g
}

// Ended informs the parent of a batch that has expired.
func (s *Batches) Ended(g *Batch) {
	if parent := s.byNumber[g.Parent]; parent != nil {
		parent.children.count(g, -1)
		if !g.succeeded() {
			s.mutate(parent, func() { parent.ChildrenLost++ })
		}
		s.check(parent)
	}
}

// Info describes a batch to clients.
func (g *Batch) Info() core.BatchInfo {
	return core.BatchInfo{
		Number: g.number, Parent: g.Parent, Description: g.Description, Owner: g.Owner, CreatedAt: g.CreatedAt,
		ExpiresAt: g.Until, Total: g.Total,
		Pending: g.members + g.Lost, Failed: g.failing + g.Lost, Lost: g.Lost, Children: g.children.all,
		Closed:   g.Committed,
		Complete: g.CompleteLost.shown(g.Complete), Success: g.SuccessLost.shown(g.Success),
		CompleteJob: g.CompleteJob, SuccessJob: g.SuccessJob,
	}
}

// List walks the list of batches from a number; the batch with that number may be gone.
func (s *Batches) List(op *core.ListBatches, limit int) (rows []core.BatchInfo, next uint64, commit core.Commit) {
	start, following := s.last, func(g *Batch) *Batch { return g.older }
	beyond := func(g *Batch) bool { return g.number >= op.From }
	if op.Oldest {
		start, following = s.first, func(g *Batch) *Batch { return g.newer }
		beyond = func(g *Batch) bool { return g.number <= op.From }
	}
	if g := s.byNumber[op.From]; g != nil {
		start = following(g)
	}
	rows, commit = []core.BatchInfo{}, s.Commit(nil)
	for g := start; g != nil; g = following(g) {
		if op.From != 0 && beyond(g) {
			continue
		}
		if len(rows) == limit {
			return rows, rows[limit-1].Number, commit
		}
		rows = append(rows, g.Info())
		commit = max(commit, s.Commit(g))
	}
	return rows, 0, commit
}

// RestoreMember counts a restored job in its batch.
func (s *Batches) RestoreMember(e *table.Entry, x *table.Optional) {
	g := s.byNumber[x.Batch]
	if x.Batch == 0 || g == nil || e.State == core.Done {
		x.Batch = 0
		return
	}
	g.members++
	if x.Tried {
		g.failing++
	} else {
		g.untried++
	}
}

// Show shows everything about batches that affects decisions, for comparisons in tests. It is not a method, so that the
// linker leaves it out of the program.
func Show(s *Batches) string {
	var b strings.Builder
	for _, number := range slices.Sorted(maps.Keys(s.byNumber)) {
		g := s.byNumber[number]
		fmt.Fprintf(&b, " batch %d %+v %d %d %d %+v", number, g.batchMeta, g.members, g.untried, g.failing, g.children)
	}
	return b.String()
}
