package service

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"broker/access"
	"broker/core"
)

// Batch is a batch of jobs.
type Batch struct {
	ID          string     `json:"id"`
	Number      uint64     `json:"number" doc:"counts up with each batch"`
	Parent      string     `json:"parent,omitempty" doc:"its batch"`
	Description string     `json:"description,omitempty"`
	State       string     `json:"state" enum:"open,running,succeeded,failed" doc:"open: not committed; failed: it cannot succeed, because one of its jobs has failed finally"`
	CreatedAt   *time.Time `json:"created_at"`
	ExpiresAt   *time.Time `json:"expires_at,omitempty" doc:"when it is removed; a reopened batch is committed again instead"`
	Total       int        `json:"total" doc:"jobs"`
	Done        int        `json:"done"`
	Pending     int        `json:"pending" doc:"not done yet"`
	Failed      int        `json:"failed" doc:"of the pending: failed at least once"`
	Lost        int        `json:"lost,omitempty" doc:"of the pending: failed for good"`
	Progress    float64    `json:"progress" doc:"done divided by total, 0 to 1"`
	Complete    *Callback  `json:"complete,omitempty" doc:"runs when every job was executed once"`
	Success     *Callback  `json:"success,omitempty" doc:"runs when every job is done"`
	Children    int        `json:"children" doc:"batches below it"`
}

// Callback is a job that runs for a batch.
type Callback struct {
	State string `json:"state" enum:"pending,enqueued,done"`
	Job   string `json:"job" doc:"seq:N"`
}

// BatchTree is a batch with the batches below it.
type BatchTree struct {
	Batch
	Batches   []BatchTree `json:"batches" doc:"its children, as trees, oldest first"`
	Truncated bool        `json:"batches_truncated,omitempty" doc:"there are more than 1,000 batches below the requested one"`
}

// BatchSubmission is a batch to be opened.
type BatchSubmission struct {
	Parent      string      `json:"parent,omitempty" doc:"its batch, which must be open"`
	Description string      `json:"description,omitempty" maxLength:"4096"`
	Complete    *Submission `json:"complete,omitempty" doc:"job that runs when every job of the batch was executed once"`
	Success     *Submission `json:"success,omitempty" doc:"job that runs when every job of the batch is done"`
	OpenForS    float64     `json:"open_for_s,omitempty" minimum:"0" doc:"an open batch is removed after this time; its jobs stay. Default: 1800"`
}

// openFor is the default time for which a batch stays open.
const openFor = 30 * time.Minute

// maxTree limits the batches of a tree.
const maxTree = 1000

func (s *Service) batchOf(b *core.BatchInfo) Batch {
	v := Batch{
		ID: s.batchName(b.Number), Number: b.Number, Parent: s.batchName(b.Parent), Description: text(b.Description),
		CreatedAt: timeOf(b.CreatedAt), ExpiresAt: timeOf(b.ExpiresAt), Total: b.Total, Done: b.Total - b.Pending,
		Pending: b.Pending,
		Failed:  b.Failed, Lost: b.Lost, Children: b.Children, State: "running",
		Complete: callbackOf(b.CompleteJob, b.Complete), Success: callbackOf(b.SuccessJob, b.Success),
	}
	if b.Total > 0 {
		v.Progress = float64(v.Done) / float64(b.Total)
	}
	switch {
	case !b.Closed:
		v.State = "open"
	case b.Success == core.CallbackDone:
		v.State = "succeeded"
	case b.Lost > 0:
		v.State = "failed"
	}
	return v
}

func callbackOf(seq uint64, state core.CallbackState) *Callback {
	if seq == 0 {
		return nil
	}
	return &Callback{State: [...]string{"pending", "enqueued", "done"}[state], Job: seqName(seq)}
}

// Batches lists batches, newest first. The cursor is empty on the last page.
func (s *Service) Batches(ctx context.Context, caller Caller, limit int, cursor string) ([]Batch, string, error) {
	if err := caller.mayAll(access.Read); err != nil {
		return nil, "", err
	}
	var from uint64
	if err := decodeCursor(cursor, &from); err != nil {
		return nil, "", err
	}
	c := s.open(caller)
	defer c.Close()
	r, err := c.call(ctx, &core.ListBatches{From: from, Limit: limit})
	if err != nil {
		return nil, "", err
	}
	list := make([]Batch, len(r.Batches))
	for i := range r.Batches {
		list[i] = s.batchOf(&r.Batches[i])
	}
	if r.NextBatch != 0 {
		cursor = encodeCursor(r.NextBatch)
	} else {
		cursor = ""
	}
	return list, cursor, nil
}

// Batch shows a batch with the batches below it.
func (s *Service) Batch(ctx context.Context, caller Caller, id string) (*BatchTree, error) {
	number, err := s.parseBatchName(id)
	if err != nil {
		return nil, &Error{Code: CodeBatchNotFound, Detail: err.Error()}
	}
	if err := s.mayBatch(caller, access.Read, &number); err != nil &&
		s.mayBatch(caller, access.Produce, &number) != nil {
		return nil, err
	}
	c := s.open(caller)
	defer c.Close()
	r, err := c.call(ctx, &core.InspectBatch{Batch: number})
	if err != nil {
		return nil, err
	}
	below := make(map[uint64][]core.BatchInfo) // by parent
	truncated, err := s.batchesBelow(ctx, c, r.Batch, below)
	if err != nil {
		return nil, err
	}
	tree := s.treeOf(r.Batch, below)
	tree.Truncated = truncated
	return &tree, nil
}

// mayBatch checks that the caller may use a batch in a role, with the same rule as on all ports. If the batch does not
// exist, the number becomes one that no batch has: another client could open the batch before the caller's request
// reaches the core.
func (s *Service) mayBatch(caller Caller, r access.Role, number *uint64) error {
	may, found := access.MayBatch(s.o.Broker, caller.Current(), r, *number)
	if may && !found {
		*number = access.Nowhere
	}
	if may {
		return nil
	}
	return &Error{Code: CodeForbidden, Detail: "principal " + caller.Name() + " lacks the role " + r.String() +
		" for the callbacks of batch " + s.batchName(*number) + ", and has not opened it"}
}

// OpenBatch opens a batch. It accepts jobs until it is committed.
func (s *Service) OpenBatch(ctx context.Context, caller Caller, b BatchSubmission) (*Batch, error) {
	if err := caller.maySome(access.Produce); err != nil {
		return nil, err
	}
	c := s.open(caller)
	defer c.Close()
	open, err := span("open_for_s", cmp.Or(b.OpenForS, openFor.Seconds()))
	if err != nil {
		return nil, err
	}
	op := &core.OpenBatch{Description: b.Description, OpenUntil: s.Now().Add(open), Owner: caller.principalName()}
	if b.Parent != "" {
		if op.Parent, err = s.parseBatchName(b.Parent); err != nil {
			return nil, invalid("parent", "%v", err)
		}
		if err := s.mayBatch(caller, access.Produce, &op.Parent); err != nil {
			return nil, err
		}
	}
	if op.Complete, err = s.callbackJob(ctx, c, b.Complete, "complete"); err != nil {
		return nil, err
	}
	if op.Success, err = s.callbackJob(ctx, c, b.Success, "success"); err != nil {
		return nil, err
	}
	do := func(op core.Op) core.Reply {
		r, err := c.ask(op)
		if err != nil && r.Kind != core.Failed {
			return core.Reply{Kind: core.Failed, Err: err}
		}
		return r
	}
	var r core.Reply
	if s.o.Batches != nil {
		r = s.o.Batches.OpenBatch(op, do)
	} else {
		r = do(op)
	}
	if err := c.committed(ctx, r.Commit); err != nil {
		return nil, err
	}
	if r.Kind == core.Failed {
		return nil, c.refusal(r.Err)
	}
	return s.showBatch(ctx, c, r.Seq)
}

// callbackJob makes the job of a callback, which is a field of the batch; nil for none.
func (s *Service) callbackJob(ctx context.Context, c *session, sub *Submission, field string) (*core.Job, error) {
	if sub == nil {
		return nil, nil
	}
	if err := c.caller.may(access.Produce, sub.Queue); err != nil {
		return nil, err
	}
	if err := onlySubmitted(sub); err != nil {
		return nil, Within(field, err)
	}
	job, err := s.jobOf(ctx, c, sub, s.Now(), false)
	return job, Within(field, err)
}

// CommitBatch closes a batch for submissions and lets its callbacks run; with reopen it accepts jobs again.
func (s *Service) CommitBatch(ctx context.Context, caller Caller, id string, reopen bool) (*Batch, error) {
	number, err := s.parseBatchName(id)
	if err != nil {
		return nil, &Error{Code: CodeBatchNotFound, Detail: err.Error()}
	}
	if err := s.mayBatch(caller, access.Produce, &number); err != nil {
		return nil, err
	}
	c := s.open(caller)
	defer c.Close()
	if _, err := c.call(ctx, &core.CloseBatch{Batch: number, Reopen: reopen}); err != nil {
		return nil, err
	}
	return s.showBatch(ctx, c, number)
}

// showBatch returns the current state of a batch.
func (s *Service) showBatch(ctx context.Context, c *session, number uint64) (*Batch, error) {
	r, err := c.call(ctx, &core.InspectBatch{Batch: number})
	if err != nil {
		return nil, err
	}
	b := s.batchOf(r.Batch)
	return &b, nil
}

// batchesBelow finds the descendants of a batch. They are newer than it.
func (s *Service) batchesBelow(
	ctx context.Context, c *session, root *core.BatchInfo, below map[uint64][]core.BatchInfo,
) (truncated bool, err error) {
	if root.Children == 0 {
		return false, nil
	}
	inTree, found := map[uint64]bool{root.Number: true}, 0
	for from := root.Number; ; {
		r, err := c.call(ctx, &core.ListBatches{Oldest: true, From: from, Limit: corePage})
		if err != nil {
			return false, err
		}
		for _, b := range r.Batches {
			if !inTree[b.Parent] {
				continue
			}
			if found++; found > maxTree {
				return true, nil
			}
			inTree[b.Number] = true
			below[b.Parent] = append(below[b.Parent], b)
		}
		if from = r.NextBatch; from == 0 {
			return false, context.Cause(ctx)
		}
	}
}

func (s *Service) treeOf(b *core.BatchInfo, below map[uint64][]core.BatchInfo) BatchTree {
	t := BatchTree{Batch: s.batchOf(b), Batches: []BatchTree{}}
	children := below[b.Number]
	for i := range children {
		t.Batches = append(t.Batches, s.treeOf(&children[i], below))
	}
	return t
}

// batchName names a batch; empty for none.
func (s *Service) batchName(number uint64) string {
	switch {
	case number == 0:
		return ""
	case s.o.Batches != nil:
		return s.o.Batches.BatchName(number)
	}
	return strconv.FormatUint(number, 10)
}

// parseBatchName reads the output of batchName, or a number.
func (s *Service) parseBatchName(name string) (uint64, error) {
	if number, err := strconv.ParseUint(name, 10, 64); err == nil && number != 0 {
		return number, nil
	}
	if s.o.Batches != nil {
		if number, ok := s.o.Batches.ParseBatchName(name); ok {
			return number, nil
		}
	}
	return 0, fmt.Errorf("%q is not the id of a batch", name)
}
