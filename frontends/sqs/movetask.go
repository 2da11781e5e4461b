package sqs

import (
	"slices"
	"strings"
	"sync"
	"time"

	"broker/access"
	"broker/core"
	"broker/core/client"
)

// States of a move task, which are stored on disk.
const (
	taskRunning   = "RUNNING"
	taskDone      = "COMPLETED"
	taskStopping  = "CANCELLING"
	taskCancelled = "CANCELLED"
	taskFailed    = "FAILED"
)

const (
	movePage    = 100
	maxMoveRate = 500
	maxShown    = 10 // maximum tasks of a queue in ListMessageMoveTasks
	maxTasks    = 10 // maximum kept finished tasks of a queue

	maxRunningTasks = 100  // of all queues, as on AWS, in shares of principals
	maxAllTasks     = 1000 // of all queues, running and finished
)

// moveTask moves the messages of a dead-letter queue to other queues. Its state is a document. After a restart it
// continues with the remaining messages.
type moveTask struct {
	Handle      string `json:"handle"`
	Source      string `json:"source"`
	Destination string `json:"destination,omitempty"` // empty: the original queue of each message
	Rate        int    `json:"rate,omitempty"`        // messages a second; 0: no limit
	StartedAt   int64  `json:"started_at"`            // Unix milliseconds

	// Sources are the allowed destinations if messages return to their original queues: the queues that the creator of
	// the task may operate; nil: any.
	Sources []string `json:"sources,omitempty"`

	holder access.Holder // of its place among the running tasks

	// Who is the principal that created the task. The task ends when the principal loses its rights.
	Who string `json:"who,omitempty"`

	mu     sync.Mutex // guards the fields below
	State  string     `json:"state"`
	Moved  int        `json:"moved"`
	ToMove int        `json:"to_move"`
	Reason string     `json:"reason,omitempty"`

	dropped bool // its document is removed
}

func (t *moveTask) running() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.State == taskRunning || t.State == taskStopping
}

// stopping reports whether the task was cancelled.
func (t *moveTask) stopping() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.State == taskStopping
}

// runTask moves messages on a goroutine that ends with the task or with Close.
func (f *Frontend) runTask(t *moveTask) {
	f.done.Go(func() {
		c := f.open(caller{internal: true})
		defer c.Close()
		state, reason := f.moveAll(c, t)
		if f.ctx.Err() != nil {
			return // the next start continues
		}
		t.mu.Lock()
		t.State, t.Reason = state, reason
		t.mu.Unlock()
		f.running.Return(t.holder, 1)
		_, _ = f.save(c, t) // a store that has failed runs the task again at the next start
	})
}

// moveAll moves the visible messages, oldest first, until it has moved all messages that existed at the start.
func (f *Frontend) moveAll(c *client.Client, t *moveTask) (state, reason string) {
	find := &core.Find{
		Tag: 1, Filter: core.Filter{Queues: []string{f.coreName(t.Source)}, States: []core.State{core.Ready}},
		Limit: movePage,
	}
	for {
		r, err := c.Ask(find)
		if err != nil {
			return taskFailed, errorOf(err).kind.code
		}
		for i := range r.Jobs {
			if t.stopping() {
				return taskCancelled, ""
			}
			if f.ctx.Err() != nil {
				return taskRunning, ""
			}
			if !f.stillMay(t, t.Source) || t.Destination != "" && !f.stillMay(t, t.Destination) {
				return taskFailed, "The creator of the task has no access to the queues any more."
			}
			if err := f.moveBack(c, t, &r.Jobs[i]); err != nil {
				return taskFailed, errorOf(err).kind.code
			}
			f.pace(t)
		}
		if _, err := f.save(c, t); err != nil {
			return taskFailed, errorOf(err).kind.code
		}
		if find.Cursor = r.NextCursor; find.Cursor == "" {
			return taskDone, ""
		}
	}
}

// pace waits according to the rate of a task.
func (f *Frontend) pace(t *moveTask) {
	if t.Rate == 0 {
		return
	}
	wait := time.NewTimer(time.Second / time.Duration(t.Rate))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-f.ctx.Done():
	}
}

// moveBack moves one message. A message that a receiver holds stays. It fails if the queue to which the message goes
// does not exist.
func (f *Frontend) moveBack(c *client.Client, t *moveTask, info *core.JobInfo) error {
	to := info.MovedFrom
	if t.Destination != "" {
		to = f.coreName(t.Destination)
	}
	var none uint32
	op := &core.Move{
		Tag: 1, Ref: core.Ref{Seq: info.Seq}, If: core.Condition{States: []core.State{core.Ready}, Queue: info.Queue},
		Authority: core.ByAnyone,
		Set:       core.JobChange{Attempts: &none},
	}
	if to == "" {
		if sources := f.sourcesOf(t.Source); len(sources) == 1 {
			to = f.coreName(sources[0])
		}
	}
	name := strings.TrimPrefix(to, f.opts.Namespace)
	switch {
	case to == "": // its original queue is unknown
	case to == info.Queue:
	case t.Destination == "" && t.Sources != nil &&
		!slices.Contains(t.Sources, to): // it now has another dead-letter queue
	case !f.stillMay(t, name):
	default:
		if _, err := f.find(name); err != nil {
			return err
		}
		op.Queue = to
		if _, err := c.Ask(op); err == nil {
			t.mu.Lock()
			t.Moved++
			t.mu.Unlock()
		}
	}
	return nil
}

// sourcesOf returns the queues whose dead letters go to a queue.
func (f *Frontend) sourcesOf(name string) []string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	var names []string
	for _, q := range f.queues {
		if q.redrive.target == name {
			names = append(names, q.Name)
		}
	}
	slices.Sort(names)
	return names
}

type listSourcesInput struct {
	target
	MaxResults *int
	NextToken  string
}

type listSourcesOutput struct {
	QueueURLs []string `json:"queueUrls" query:"QueueUrl"`
	NextToken string   `json:",omitempty"`
}

func (q *request) listSources(of *queue, in *listSourcesInput) (any, error) {
	limit, after, err := pageOf(in.MaxResults, in.NextToken)
	if err != nil {
		return nil, err
	}
	out := &listSourcesOutput{QueueURLs: []string{}}
	for _, name := range q.front.sourcesOf(of.Name) {
		if name <= after || !q.mayUse(name) {
			continue
		}
		if len(out.QueueURLs) == limit {
			out.NextToken = tokenOf(queueName(out.QueueURLs[limit-1]))
			break
		}
		out.QueueURLs = append(out.QueueURLs, q.urlOf(name))
	}
	return out, nil
}

type startTaskInput struct {
	SourceARN string `json:"SourceArn" query:"SourceArn"`
	TargetARN string `json:"DestinationArn" query:"DestinationArn"`
	Rate      *int   `json:"MaxNumberOfMessagesPerSecond" query:"MaxNumberOfMessagesPerSecond"`
}

type taskHandle struct {
	TaskHandle string
}

func (q *request) startMoveTask(in *startTaskInput) (any, error) {
	f := q.front
	source, err := q.byARN(in.SourceARN, "SourceArn", access.Operate)
	if err != nil {
		return nil, err
	}
	if r := in.Rate; r != nil && (*r < 1 || *r > maxMoveRate) {
		return nil, badValue(*r, "MaxNumberOfMessagesPerSecond", "Must be between 1 and 500.")
	}
	t := &moveTask{
		Source: source.Name, StartedAt: f.broker.Now().Time().UnixMilli(), State: taskRunning, Who: q.from.name(),
		holder: access.HolderOf(q.from.principal, q.from.address),
	}
	if in.Rate != nil {
		t.Rate = *in.Rate
	}
	sources := f.sourcesOf(source.Name)
	if len(sources) == 0 {
		return nil, refuse(invalidParameter, "Source queue must be configured as a Dead Letter Queue.")
	}
	if in.TargetARN != "" {
		to, err := q.byARN(in.TargetARN, "DestinationArn", access.Operate)
		if err != nil {
			return nil, err
		}
		if to.Name == source.Name {
			return nil, badValue(shorten(in.TargetARN), "DestinationArn", "Must be another queue than the source.")
		}
		t.Destination, sources = to.Name, nil
	}
	for _, name := range sources { // each message may go to any of them
		if err := q.mayOne(operate, name); err != nil {
			return nil, err
		}
		if !q.from.principal.MayAll(access.Operate) {
			t.Sources = append(t.Sources, f.coreName(name))
		}
	}
	info, err := f.inspect(source.Name)
	if err != nil {
		return nil, err
	}
	if info != nil {
		t.ToMove = info.Ready()
	}
	t.Handle = q.front.newTaskHandle(source.Name)
	c := f.open(q.from)
	defer c.Close()
	commit, err := f.addTask(c, t)
	if err != nil {
		return nil, err
	}
	q.audit("queue.redrive", source.Name, t.Destination)
	return &taskHandle{t.Handle}, c.Committed(q.ctx, commit)
}

// byARN finds the queue of an ARN in a parameter.
func (q *request) byARN(arn, parameter string, role access.Role) (*queue, error) {
	if arn == "" {
		return nil, missing(parameter)
	}
	if strings.Count(arn, ":") != 5 {
		return nil, refuse(invalidParameter,
			"You must use this format to specify the %s: arn:<partition>:<service>:<region>:<account-id>:<resource-id>",
			parameter)
	}
	if err := q.front.may(q.from, role, arnName(arn)); err != nil {
		return nil, err
	}
	of, err := q.front.find(arnName(arn))
	if err != nil {
		return nil, noResource(parameter)
	}
	return of, nil
}

func noResource(parameter string) error {
	return refuse(resourceNotFound, "The resource that you specified for the %s parameter doesn't exist.", parameter)
}

type listTasksInput struct {
	SourceARN  string `json:"SourceArn" query:"SourceArn"`
	MaxResults *int
}

type taskView struct {
	TaskHandle        string `json:",omitempty"`
	Status            string
	SourceARN         string `json:"SourceArn" query:"SourceArn"`
	DestinationARN    string `json:"DestinationArn,omitempty" query:"DestinationArn"`
	Rate              int    `json:"MaxNumberOfMessagesPerSecond,omitempty" query:"MaxNumberOfMessagesPerSecond"`
	ApproximateMoved  *int   `json:"ApproximateNumberOfMessagesMoved" query:"ApproximateNumberOfMessagesMoved"`
	ApproximateToMove *int   `json:"ApproximateNumberOfMessagesToMove" query:"ApproximateNumberOfMessagesToMove"`
	FailureReason     string `json:",omitempty"`
	StartedTimestamp  int64
}

type listTasksOutput struct {
	Results []taskView `json:",omitempty" query:"ListMessageMoveTasksResultEntry"`
}

func (q *request) listMoveTasks(in *listTasksInput) (any, error) {
	source, err := q.byARN(in.SourceARN, "SourceArn", access.Read)
	if err != nil {
		return nil, err
	}
	limit := 1
	if in.MaxResults != nil {
		if limit = *in.MaxResults; limit < 1 || limit > maxShown {
			return nil, badValue(limit, "MaxResults", "Must be between 1 and 10.")
		}
	}
	out := &listTasksOutput{}
	for _, t := range q.front.tasksOf(source.Name) {
		if len(out.Results) < limit {
			out.Results = append(out.Results, q.front.viewTask(t))
		}
	}
	return out, nil
}

func (f *Frontend) viewTask(t *moveTask) taskView {
	t.mu.Lock()
	defer t.mu.Unlock()
	moved, toMove := t.Moved, t.ToMove
	v := taskView{
		Status: t.State, SourceARN: f.arnOf(t.Source), Rate: t.Rate, ApproximateMoved: &moved,
		ApproximateToMove: &toMove,
		FailureReason:     t.Reason, StartedTimestamp: t.StartedAt,
	}
	if t.State == taskRunning {
		v.TaskHandle = t.Handle
	}
	if t.Destination != "" {
		v.DestinationARN = f.arnOf(t.Destination)
	}
	return v
}

type cancelTaskOutput struct {
	Moved *int `json:"ApproximateNumberOfMessagesMoved" query:"ApproximateNumberOfMessagesMoved"`
}

func (q *request) cancelMoveTask(in *taskHandle) (any, error) {
	if in.TaskHandle == "" {
		return nil, missing("TaskHandle")
	}
	source, ok := q.front.sourceOf(in.TaskHandle)
	if !ok {
		return nil, refuse(invalidParameter, "Value for parameter TaskHandle is invalid.")
	}
	if err := q.mayOne(operate, source); err != nil {
		return nil, err
	}
	if _, err := q.front.find(source); err != nil {
		return nil, noResource("SourceArn")
	}
	for _, t := range q.front.tasksOf(source) {
		if t.Handle != in.TaskHandle {
			continue
		}
		t.mu.Lock()
		moved, running := t.Moved, t.State == taskRunning
		if running {
			t.State = taskStopping
		}
		t.mu.Unlock()
		if !running {
			break
		}
		c := q.front.open(q.from)
		defer c.Close()
		commit, err := q.front.save(c, t)
		if err != nil {
			return nil, err
		}
		q.audit("queue.redrive.cancel", source, "")
		return &cancelTaskOutput{&moved}, c.Committed(q.ctx, commit)
	}
	return nil, refuse(resourceNotFound, "Task does not exist.")
}
