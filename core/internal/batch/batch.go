package batch

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"broker/core"
	"broker/core/internal/slot"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// A batch is a set of jobs with up to two callback jobs, which are blocked until all members have been executed
// (Complete) or are done (Success). Counts of members and child batches are derived from these after a restart; only
// other data is stored with the batch.
//
//	open ─ CloseBatch ─▶ every member executed, Complete of all children done ─▶ Complete runs
//	  ▲                    all members done, Success of all children done ─▶ Success runs ─▶ kept for retainFinished
//	  └── Reopen ──┘

const (
	retainFinished = 30 * time.Minute // how long a finished batch can be inspected
	reopenedFor    = 30 * time.Minute // how long a reopened batch may stay uncommitted
)

// Host is what batches need from the machine.
type Host interface {
	Unblock(h uint32, e *table.Entry) // a callback is due
	Spent() bool                      // the current operation or step leaves everything else for later
	Later(next func() (more bool))    // next does the next part of what is left; false: nothing is left
}

// Batches are all batches. Not safe for concurrent use.
type Batches struct {
	table    *table.Table
	host     Host
	byNumber map[uint64]*Batch
	// first and last are the ends of the list of batches, the oldest first.
	first, last *Batch
	slots       slot.Map[Batch] // for their deadlines
	dirty       []uint64        // batches with the dirty flag
	lastRemoval core.Commit     // of a batch
	later       int             // checks that are left for later steps
}

// New returns Batches without any batch.
func New(t *table.Table, host Host) *Batches {
	return &Batches{table: t, host: host, byNumber: map[uint64]*Batch{}}
}

// Batch is one batch.
type Batch struct {
	batchMeta
	number   uint64
	slot     uint32 // in Batches.slots, for its deadline
	members  int    // existing members
	untried  int    // existing members that were never executed
	failing  int    // existing members that have failed at least once
	children childCount
	deadline timer.ID
	dirty    bool
	// The commit of its last change, including the counts of its members and children.
	changedIn core.Commit
	// The list of all batches, in the order of their numbers.
	older, newer *Batch
}

// childCount counts child batches.
type childCount struct {
	all        int
	incomplete int // Complete is not done
	unfinished int // Success is not done
}

// batchMeta is the stored form of a batch.
type batchMeta struct {
	Parent       uint64             `json:"parent,omitempty"`
	Description  string             `json:"description,omitempty"`
	Owner        string             `json:"owner,omitempty"`
	CreatedAt    core.Instant       `json:"created_at"`
	Until        core.Instant       `json:"until,omitempty"` // not committed: deadline; finished: kept until then
	Total        int                `json:"total"`
	Lost         int                `json:"lost,omitempty"`      // members that ended as failed
	ChildrenLost int                `json:"kids_lost,omitempty"` // child batches that ended without success
	Committed    bool               `json:"committed,omitempty"`
	Reopened     bool               `json:"reopened,omitempty"` // it was committed before
	CompleteJob  uint64             `json:"complete_job,omitempty"`
	SuccessJob   uint64             `json:"success_job,omitempty"`
	Complete     core.CallbackState `json:"complete,omitempty"`
	Success      core.CallbackState `json:"success,omitempty"`
	CallbackLost bool               `json:"callback_lost,omitempty"` // a callback ended without being done
	CompleteLost lostCallback       `json:"complete_lost,omitempty"`
	SuccessLost  lostCallback       `json:"success_lost,omitempty"`
}

// lostCallback is the state, plus one, of a callback that ended without being done; zero if it is not lost. The batch
// continues as if the callback were done.
type lostCallback uint8

// shown is the state of a callback as reported to clients.
func (l lostCallback) shown(st core.CallbackState) core.CallbackState {
	if l > 0 {
		return core.CallbackState(l - 1)
	}
	return st
}

// Prefix is the prefix of the names of the meta entries of batches. It is on disk and never changes.
const Prefix = "core/group/"

// cannotSucceed reports whether a batch can no longer succeed.
func (g *Batch) cannotSucceed() bool { return g.Lost > 0 || g.ChildrenLost > 0 || g.CallbackLost }

// succeeded reports whether the Success callback of a parent need not wait for this batch any more. Jobs that join the
// batch later, after it was reopened, do not change that.
func (g *Batch) succeeded() bool { return g.Success == core.CallbackDone && !g.CallbackLost }

// count adds a child batch in its current state n times; n may be -1.
func (k *childCount) count(child *Batch, n int) {
	k.all += n
	if child.Complete != core.CallbackDone {
		k.incomplete += n
	}
	if !child.succeeded() {
		k.unfinished += n
	}
}

// mutate changes a batch and updates the counts of its parent.
func (s *Batches) mutate(g *Batch, how func()) {
	parent := s.byNumber[g.Parent]
	if parent != nil {
		parent.children.count(g, -1)
	}
	how()
	if parent != nil {
		parent.children.count(g, 1)
		parent.changedIn = s.table.Open // clients see the number of its children
	}
	g.changedIn = s.table.Open
	if !g.dirty && s.table.Persists() {
		g.dirty = true
		s.dirty = append(s.dirty, g.number)
	}
}

// add adds a new or restored batch to the indexes.
func (s *Batches) add(g *Batch) {
	g.slot = s.slots.Add(g)
	s.byNumber[g.number] = g
	s.setDeadline(g, g.Until)
}

// link appends the newest batch to the list.
func (s *Batches) link(g *Batch) {
	if g.older = s.last; g.older != nil {
		g.older.newer = g
	} else {
		s.first = g
	}
	s.last = g
}

// Forget removes a batch from all indexes and from the store.
func (s *Batches) Forget(g *Batch) {
	s.mutate(g, func() { delete(s.byNumber, g.number) })
	s.lastRemoval = s.table.Open
	s.table.Timers.Remove(&g.deadline)
	s.slots.Remove(g.slot)
	if g.older != nil {
		g.older.newer = g.newer
	} else {
		s.first = g.newer
	}
	if g.newer != nil {
		g.newer.older = g.older
	} else {
		s.last = g.older
	}
}

// setDeadline sets a batch's deadline; zero: none.
func (s *Batches) setDeadline(g *Batch, until core.Instant) {
	s.table.Timers.Remove(&g.deadline)
	if g.Until = until; until != 0 {
		g.deadline = s.table.Timers.Add(until, timer.Owner{Kind: table.TimerBatch, Handle: g.slot})
	}
}

// Join counts a new job in its batch.
func (s *Batches) Join(h uint32) {
	if x := s.table.Optional(h); x != nil && x.Batch != 0 {
		g := s.byNumber[x.Batch]
		s.mutate(g, func() {
			g.Total++
			g.members++
			g.untried++
		})
	}
}

// Executed counts the first failure of a job in its batch.
func (s *Batches) Executed(h uint32) {
	x := s.table.Optional(h)
	if x == nil || x.Batch == 0 || x.Tried {
		return
	}
	x.Tried = true
	if g := s.byNumber[x.Batch]; g != nil {
		g.untried--
		g.failing++
		g.changedIn = s.table.Open
		s.check(g)
	}
}

// memberGone removes a job from the batch it is a member of, and from the batch whose callback it is; count records how
// a member ended.
func (s *Batches) memberGone(h uint32, success bool, count func(*Batch)) {
	x := s.table.Optional(h)
	if x == nil || x.Batch == 0 && x.CallbackFor == 0 {
		return
	}
	g, of := s.byNumber[x.Batch], s.byNumber[x.CallbackFor]
	x.Batch, x.CallbackFor = 0, 0
	if of != nil {
		s.callbackEnded(of, s.table.At(h).Seq, success)
	}
	if g == nil {
		return
	}
	s.mutate(g, func() {
		g.members--
		if x.Tried {
			g.failing--
		} else {
			g.untried--
		}
		count(g)
	})
	s.check(g)
}

// MemberDone counts a member that ended.
func (s *Batches) MemberDone(h uint32, success bool) {
	s.memberGone(h, success, func(g *Batch) {
		if !success {
			g.Lost++
		}
	})
}

// Leave removes a job that ended without being done from its batch. The batch continues with its other members.
func (s *Batches) Leave(h uint32) {
	s.memberGone(h, false, func(g *Batch) { g.Total-- })
}

// check releases the due callbacks of a batch and of its ancestors. The caller has changed the batch, so its parent
// may be due, too. An older ancestor is due only if the batch below it has changed here. Where the step is over, a
// later one goes on; a start finds what is due (Relink).
func (s *Batches) check(g *Batch) {
	for first, changed := true, true; g != nil && changed; first, g = false, s.byNumber[g.Parent] {
		if s.host.Spent() {
			s.checkLater(g.number)
			return
		}
		s.table.Touched++
		complete, success := g.Complete, g.Success
		if g.completeIsDue() {
			s.mutate(g, func() { g.Complete = s.callbackDue(g.CompleteJob) })
			s.releaseCallback(g.CompleteJob)
		}
		if g.successIsDue() {
			s.mutate(g, func() { g.Success = s.callbackDue(g.SuccessJob) })
			s.releaseCallback(g.SuccessJob)
		}
		if g.endIsDue() {
			s.mutate(g, func() { s.setDeadline(g, s.table.Now.Add(retainFinished)) })
		}
		changed = first || complete != g.Complete || success != g.Success
	}
}

// checkLater leaves it to a later step to check a batch.
func (s *Batches) checkLater(number uint64) {
	s.later++
	s.host.Later(func() (more bool) {
		s.later--
		s.check(s.byNumber[number])
		return false
	})
}

func batchMetaName(number uint64) string { return Prefix + strconv.FormatUint(number, 10) }

// Seal adds the entries of changed batches.
func (s *Batches) Seal(into []core.MetaEntry) []core.MetaEntry {
	for _, number := range s.dirty {
		g := s.byNumber[number]
		if g == nil {
			into = append(into, core.MetaEntry{Name: batchMetaName(number)})
			continue
		}
		g.dirty = false
		into = append(into, core.MetaEntry{Name: batchMetaName(number), Value: table.Encode(g.batchMeta)})
	}
	s.dirty = s.dirty[:0]
	return into
}

// Restore restores a stored batch.
func (s *Batches) Restore(name string, value []byte) error {
	g, err := decode(name, value)
	if err != nil {
		return err
	}
	s.table.NextSeq = max(s.table.NextSeq, g.number+1)
	s.add(g)
	return nil
}

// decode decodes a stored batch.
func decode(name string, value []byte) (*Batch, error) {
	n, err := strconv.ParseUint(name[len(Prefix):], 10, 64)
	if err != nil {
		return nil, err
	}
	g := &Batch{number: n}
	return g, json.Unmarshal(value, &g.batchMeta)
}

// Relink computes the counts that are not stored, once all jobs are restored. It also continues batches whose last
// awaited member was lost, and those that a step would have checked.
func (s *Batches) Relink() {
	for _, number := range slices.Sorted(maps.Keys(s.byNumber)) {
		g := s.byNumber[number]
		s.link(g)
		if parent := s.byNumber[g.Parent]; parent != nil {
			parent.children.count(g, 1)
		}
	}
	for _, number := range slices.Sorted(maps.Keys(s.byNumber)) {
		if g := s.byNumber[number]; g.completeIsDue() || g.successIsDue() || g.endIsDue() {
			s.check(g)
		}
	}
}

// completeIsDue reports whether Complete is pending although nothing is left to wait for. After a restart, this means
// that the store has lost the last member.
func (g *Batch) completeIsDue() bool {
	return g.Committed && g.Complete == core.CallbackPending && g.untried == 0 && g.children.incomplete == 0
}

// successIsDue reports whether Success is pending although nothing is left to wait for.
func (g *Batch) successIsDue() bool {
	return g.Committed && g.Success == core.CallbackPending && g.Complete == core.CallbackDone && g.members == 0 &&
		g.children.unfinished == 0 && !g.cannotSucceed()
}

// endIsDue reports whether a batch is finished and does not expire yet.
func (g *Batch) endIsDue() bool {
	over := g.Success == core.CallbackDone || g.cannotSucceed() && g.members == 0 && g.children.all == 0
	return g.Committed && over && g.Complete == core.CallbackDone && g.Until == 0
}
