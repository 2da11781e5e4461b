package sqs

import (
	"cmp"
	"slices"
	"time"

	"broker/core"
	"broker/core/client"
)

// Limits of a receive.
const (
	maxMessages   = 10
	maxWait       = 20
	maxVisibility = 43200
	maxReplyBytes = 8 << 20 // limit of bodies after the first, because other protocols allow large bodies
)

type receiveInput struct {
	target
	MaxNumberOfMessages         *int
	VisibilityTimeout           *int
	WaitTimeSeconds             *int
	AttributeNames              []string `query:"AttributeName"`
	MessageSystemAttributeNames []string `query:"MessageSystemAttributeName"`
	MessageAttributeNames       []string `query:"MessageAttributeName"`
	ReceiveRequestAttemptID     string   `json:"ReceiveRequestAttemptId" query:"ReceiveRequestAttemptId"`
}

// wantsSystem reports whether the receiver has requested a system attribute.
func (in *receiveInput) wantsSystem(name string) bool {
	return slices.Contains(in.AttributeNames, name) || slices.Contains(in.AttributeNames, allAttributes) ||
		slices.Contains(in.MessageSystemAttributeNames, name) ||
		slices.Contains(in.MessageSystemAttributeNames, allAttributes)
}

type receiveOutput struct {
	Messages []message `json:",omitempty" query:"Message"`
}

// check checks the parameters.
func (in *receiveInput) check(of *queue) error {
	for _, p := range []struct {
		value       *int
		name        string
		least, most int
		reason      string
	}{
		{in.MaxNumberOfMessages, "MaxNumberOfMessages", 1, maxMessages, "Must be between 1 and 10, if provided."},
		{in.VisibilityTimeout, visibilityTimeout, 0, maxVisibility, "Must be >= 0 and <= 43200, if provided."},
		{in.WaitTimeSeconds, "WaitTimeSeconds", 0, maxWait, "Must be >= 0 and <= 20, if provided."},
	} {
		if p.value != nil && (*p.value < p.least || *p.value > p.most) {
			return badValue(*p.value, p.name, p.reason)
		}
	}
	for _, name := range slices.Concat(in.AttributeNames, in.MessageSystemAttributeNames) {
		if name != allAttributes && !slices.Contains(systemNames, name) && settingOf(name) == nil &&
			!slices.Contains(readOnly, name) {
			return refuse(invalidAttributeName, "Unknown Attribute %s.", shorten(name))
		}
	}
	if id := in.ReceiveRequestAttemptID; id != "" && (!of.FIFO || !validGroup(id)) {
		return badValue(shorten(id), "ReceiveRequestAttemptId",
			"Only for FIFO queues; 1 to 128 alphanumeric and punctuation characters.")
	}
	return nil
}

// receiveMessage leases messages. If there is none yet and the receiver waits for the first one, the outcome is the
// leasing: its conclude returns the final result.
func (q *request) receiveMessage(of *queue, in *receiveInput) (outcome, error) {
	if err := in.check(of); err != nil {
		return outcome{}, err
	}
	f := q.front
	l := &leasing{q: q, of: of, in: in, c: f.open(q.from), limit: 1}
	waits := false
	defer func() {
		if !waits {
			l.c.Close()
		}
	}()
	if in.MaxNumberOfMessages != nil {
		l.limit = *in.MaxNumberOfMessages
	}
	if again, found := f.findAttempt(of.Name, in.ReceiveRequestAttemptID); found {
		if out, commit := l.repeat(again); out != nil {
			return outcome{result: out}, l.c.Committed(q.ctx, commit)
		}
	}
	if full, err := l.full(); full || err != nil {
		if of.FIFO && err == nil {
			return outcome{result: &receiveOutput{}}, nil
		}
		if err == nil {
			err = refuse(overLimit, "Too many messages in flight: %d.", f.opts.MaxInFlight)
		}
		return outcome{}, err
	}
	q.giveBack = l.giveBack
	l.request()
	if waits = !l.c.Replied(); waits {
		return outcome{waits: l}, nil
	}
	return l.result()
}

// conclude ends a leasing that has waited.
func (l *leasing) conclude() (outcome, error) {
	defer l.c.Close()
	return l.result()
}

// result returns the leased messages. It waits if there is no reply yet.
func (l *leasing) result() (out outcome, err error) {
	q, f, of, in := l.q, l.q.front, l.of, l.in
	if err := l.take(); err != nil {
		return out, err
	}
	if len(l.taken) == 0 {
		return outcome{result: &receiveOutput{}}, nil
	}
	if err := q.mayOne(consume, of.Name); err != nil { // a reload may have removed the right during the wait
		return out, err
	}
	if err := l.c.Committed(q.ctx, client.Latest(l.taken)); err != nil { // see core.Submit.Window
		return out, err
	}
	l.hide()
	f.rememberAttempt(of.Name, in.ReceiveRequestAttemptID, l.taken)
	return outcome{result: l.view()}, nil
}

// leasing is a receive in progress.
type leasing struct {
	q     *request
	of    *queue
	in    *receiveInput
	c     *client.Client
	limit int
	taken []core.Reply // Assigned
	again bool         // taken by an earlier receive
}

// full reports whether the queue has reached its limit of messages in flight. If it nearly has, it lowers the limit of
// the receive.
func (l *leasing) full() (bool, error) {
	if l.q.front.opts.MaxInFlight == 0 {
		return false, nil
	}
	info, err := l.q.front.inspect(l.of.Name)
	if info != nil {
		l.limit = min(l.limit, l.q.front.opts.MaxInFlight-info.Leased)
	}
	return l.limit <= 0, err
}

// request asks for messages. The core moves a message that was received too often to the dead-letter queue instead.
func (l *leasing) request() {
	f := l.q.front
	wait := l.of.number(receiveWait)
	if l.in.WaitTimeSeconds != nil {
		wait = *l.in.WaitTimeSeconds
	}
	op := &core.Lease{
		Tag: 1, Queues: []string{f.coreName(l.of.Name)}, Holder: core.HeldByNobody,
		LeaseFor: seconds(l.of.number(visibilityTimeout)),
		Max:      l.limit, MaxBytes: maxReplyBytes,
	}
	if l.in.VisibilityTimeout != nil {
		op.LeaseFor = seconds(*l.in.VisibilityTimeout)
	}
	if wait > 0 {
		op.Deadline = f.broker.Now().Add(seconds(wait))
	}
	l.c.Do(op)
}

// take collects the leased messages. It has them even with an error, because they must be released if the caller has
// disconnected.
func (l *leasing) take() (err error) {
	l.taken, err = l.c.Leased(l.q.ctx)
	return err
}

// giveBack releases all leased messages, as if they had not been received.
func (l *leasing) giveBack() {
	c := l.q.front.open(caller{internal: true})
	defer c.Close()
	c.Release(l.taken)
	l.taken = nil
}

// visibility is the visibility timeout of a message: of the receiver, else of the job, else of the queue.
func (l *leasing) visibility(job *core.Job) time.Duration {
	switch {
	case l.in.VisibilityTimeout != nil:
		return seconds(*l.in.VisibilityTimeout)
	case job.LeaseFor != 0:
		return job.LeaseFor
	}
	return seconds(l.of.number(visibilityTimeout))
}

// hide sets the ends of the leases that do not last for the visibility timeout.
func (l *leasing) hide() {
	now := l.q.front.broker.Now()
	ops := make([]core.Op, 0, len(l.taken))
	for i := range l.taken {
		r := &l.taken[i]
		if timeout := l.visibility(r.Job); l.again || timeout == 0 || timeout != r.Lease.LeaseFor {
			ops = append(ops, &core.Report{
				Tag: 1, Ref: core.Ref{Seq: r.Seq}, If: core.Condition{LeasedAt: r.Lease.LeasedAt},
				Authority: core.ByLeased,
				Heartbeat: true, LeaseUntil: now.Add(timeout),
			})
		}
	}
	if len(ops) > 0 {
		l.c.AskAll(ops...) // a message deleted in the meantime needs no end
	}
}

// history is what a message carries from earlier receives.
type history struct {
	firstLeasedAt core.Instant
	movedFrom     string // the queue from which it came as a dead letter
}

// view returns the messages with the requested attributes.
func (l *leasing) view() *receiveOutput {
	out := &receiveOutput{Messages: make([]message, len(l.taken))}
	for i := range l.taken {
		r := &l.taken[i]
		past := history{firstLeasedAt: r.Lease.LeasedAt}
		if r.Lease.Attempts > 1 && (l.in.wantsSystem(sysFirst) || l.in.wantsSystem(sysDeadSource)) {
			if is, err := l.c.Ask(&core.Inspect{Tag: 1, Ref: core.Ref{Seq: r.Seq}, Brief: true}); err == nil {
				past.movedFrom = is.Info.MovedFrom
				past.firstLeasedAt = cmp.Or(is.Info.Tally.FirstLeasedAt, past.firstLeasedAt)
			}
		}
		out.Messages[i] = l.q.front.view(r, past, l.in)
	}
	return out
}
