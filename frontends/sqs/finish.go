package sqs

import (
	"errors"
	"slices"

	"broker/core"
	"broker/core/client"
)

type deleteInput struct {
	target
	ReceiptHandle string
}

func (q *request) deleteMessage(of *queue, in *deleteInput) (any, error) {
	errs, err := q.finish(of, []messageChange{{handle: in.ReceiptHandle}})
	if err != nil {
		return nil, err
	}
	return nil, errs[0]
}

type changeInput struct {
	target
	ReceiptHandle     string
	VisibilityTimeout *int
}

func (q *request) changeVisibility(of *queue, in *changeInput) (any, error) {
	if in.VisibilityTimeout == nil {
		return nil, missing(visibilityTimeout)
	}
	errs, err := q.finish(of, []messageChange{{handle: in.ReceiptHandle, visibility: in.VisibilityTimeout}})
	if err != nil {
		return nil, err
	}
	return nil, errs[0]
}

// messageChange is a request to delete a message, or to change its visibility.
type messageChange struct {
	handle     string
	visibility *int // nil: delete it
}

// errNotAvailable is the error for a message that is deleted or held by another receiver.
func errNotAvailable(handle string) error {
	return badValue(shorten(handle), "ReceiptHandle",
		"Message does not exist or is not available for visibility timeout change.")
}

func errExpired(handle string) error {
	return badValue(shorten(handle), "ReceiptHandle", "The receipt handle has expired.")
}

// finish deletes messages or changes their visibility, each independently, and waits for the commit.
func (q *request) finish(of *queue, wanted []messageChange) ([]error, error) {
	c := q.front.open(q.from)
	defer c.Close()
	errs := make([]error, len(wanted))
	var commit core.Commit
	for i, w := range wanted {
		r, err := q.finishOne(of, c, w)
		commit, errs[i] = max(commit, r.Commit), err
	}
	return errs, c.Committed(q.ctx, commit)
}

func (q *request) finishOne(of *queue, c *client.Client, w messageChange) (core.Reply, error) {
	if w.handle == "" {
		return core.Reply{}, missing("ReceiptHandle")
	}
	if w.visibility != nil && (*w.visibility < 0 || *w.visibility > maxVisibility) {
		return core.Reply{},
			badValue(*w.visibility, visibilityTimeout, "VisibilityTimeout must be an integer between 0 and 43200")
	}
	h, err := parseHandle(w.handle, q.front.coreName(of.Name))
	switch {
	case err != nil:
		return core.Reply{}, err
	case w.visibility == nil:
		return q.deleteOne(of, c, h, w)
	}
	return q.changeOne(of, c, h, w)
}

// deleteOne deletes a message by any of its handles. In a FIFO queue only the handle of the current lease counts.
// Deleting a message twice succeeds.
func (q *request) deleteOne(of *queue, c *client.Client, h receiptHandle, w messageChange) (core.Reply, error) {
	op := &core.Complete{
		Tag: 1, Ref: core.Ref{Seq: h.seq}, If: core.Condition{Queue: q.front.coreName(of.Name)},
		Authority: core.ByAnyone,
	}
	if of.FIFO {
		op.If.LeasedAt, op.If.Unended = h.leasedAt, true
	}
	r, err := c.Ask(op)
	switch {
	case errors.Is(err, core.ErrNotFound), errors.Is(err, core.ErrFinished):
		return r, nil
	case errors.Is(err, core.ErrConflict) && of.FIFO:
		return q.deleteExpired(of, c, h, w)
	case errors.Is(err, core.ErrConflict):
		return r, nil // a dead letter by now, so no longer in this queue
	}
	return r, err
}

// deleteExpired is the result of deleting a message of a FIFO queue whose lease is another one by now, or has ended. If
// the message has left the queue, it is deleted already.
func (q *request) deleteExpired(of *queue, c *client.Client, h receiptHandle, w messageChange) (core.Reply, error) {
	r, err := c.Ask(&core.Inspect{Tag: 1, Ref: core.Ref{Seq: h.seq}, Brief: true})
	switch {
	case errors.Is(err, core.ErrNotFound), err == nil && r.Info.Queue != q.front.coreName(of.Name):
		return r, nil
	case err == nil:
		err = errExpired(w.handle)
	}
	return r, err
}

// changeOne sets the time until a message is visible again. With zero its lease ends as if it had expired. In a
// standard queue the handle of an expired lease also counts, and makes the message invisible again.
func (q *request) changeOne(of *queue, c *client.Client, h receiptHandle, w messageChange) (core.Reply, error) {
	until := q.front.broker.Now().Add(seconds(*w.visibility))
	here := core.Condition{Queue: q.front.coreName(of.Name)}
	report := &core.Report{
		Tag: 1, Ref: core.Ref{Seq: h.seq}, If: here, Authority: core.ByLeased, Heartbeat: true, LeaseUntil: until,
	}
	if of.FIFO {
		report.If.LeasedAt, report.If.Unended = h.leasedAt, true
	}
	r, err := c.Ask(report)
	switch {
	case err == nil:
		return r, nil
	case of.FIFO && (errors.Is(err, core.ErrConflict) || errors.Is(err, core.ErrNotLeased)):
		return r, errExpired(w.handle)
	case errors.Is(err, core.ErrNotLeased) && *w.visibility == 0:
		return r, nil
	case errors.Is(err, core.ErrNotLeased):
		here.States = []core.State{core.Ready, core.Scheduled}
		r, err = c.Ask(&core.Update{Tag: 1, Ref: core.Ref{Seq: h.seq}, If: here, Set: core.JobChange{ReadyAt: &until}})
	}
	if gone(err) {
		return r, errNotAvailable(w.handle)
	}
	return r, err
}

// gone reports whether an operation failed because another client has deleted or received the message.
func gone(err error) bool {
	return slices.ContainsFunc([]error{core.ErrNotFound, core.ErrFinished, core.ErrConflict, core.ErrNotLeased},
		func(kind error) bool {
			return errors.Is(err, kind)
		})
}
