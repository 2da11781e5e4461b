package sqs

import (
	"slices"

	"broker/access"
	"broker/core"
	"broker/core/client"
)

// command describes an action of the API.
type command struct {
	run     func(*request) (outcome, error)
	noQueue bool // not allowed with Query on a queue's path
}

// outcome is how far a request is: it has its result, or it waits.
type outcome struct {
	result any      // a pointer to a struct that is encoded; nil: the action has none
	waits  *leasing // a receive that waits for its first message; nil: the request is complete
	reply  *reply   // of the leader, at a node that follows
}

// Roles of an action. One of them, for the queue, is enough.
var (
	produce = []access.Role{access.Produce}
	consume = []access.Role{access.Consume}
	read    = []access.Role{access.Read}
	operate = []access.Role{access.Operate}
	anyRole = []access.Role{access.Read, access.Produce, access.Consume, access.Operate}
)

// receiveAction is the only action that waits for more than a commit.
const receiveAction = "ReceiveMessage"

// commands are the actions by name.
var commands = map[string]command{
	"CreateQueue":        {run: plain((*request).createQueue), noQueue: true},
	"ListQueues":         {run: settled(plain((*request).listQueues)), noQueue: true},
	"GetQueueUrl":        {run: settled(plain((*request).getQueueURL))},
	"DeleteQueue":        on(operate, (*request).deleteQueue),
	"PurgeQueue":         on(operate, (*request).purgeQueue),
	"GetQueueAttributes": {run: settled(on(anyRole, (*request).getQueueAttributes).run)},
	"SetQueueAttributes": on(operate, (*request).setQueueAttributes),
	"TagQueue":           on(operate, (*request).tagQueue),
	"UntagQueue":         on(operate, (*request).untagQueue),
	"ListQueueTags":      {run: settled(on(read, (*request).listQueueTags).run)},
	"AddPermission":      on(operate, (*request).addPermission),
	"RemovePermission":   on(operate, (*request).removePermission),

	"SendMessage":      on(produce, (*request).sendMessage),
	"SendMessageBatch": on(produce, (*request).sendMessageBatch),

	"ReceiveMessage":               {run: decoded(ofQueue(consume, (*request).receiveMessage))},
	"DeleteMessage":                on(consume, (*request).deleteMessage),
	"DeleteMessageBatch":           on(consume, (*request).deleteMessageBatch),
	"ChangeMessageVisibility":      on(consume, (*request).changeVisibility),
	"ChangeMessageVisibilityBatch": on(consume, (*request).changeVisibilityBatch),

	"ListDeadLetterSourceQueues": {run: settled(on(read, (*request).listSources).run)},
	"StartMessageMoveTask":       {run: plain((*request).startMoveTask)},
	"ListMessageMoveTasks":       {run: plain((*request).listMoveTasks)},
	"CancelMessageMoveTask":      {run: plain((*request).cancelMoveTask)},
}

// settled runs an action that reads queues, and waits until what it has read is durable: another caller's change is
// visible before its commit.
func settled(run func(*request) (outcome, error)) func(*request) (outcome, error) {
	return func(q *request) (outcome, error) {
		out, err := run(q)
		if err != nil {
			return outcome{}, err
		}
		c := q.front.open(q.from)
		defer c.Close()
		return out, c.Committed(q.ctx, client.Latest(c.AskAll(&core.LastCommit{Tag: 1})))
	}
}

// decoded decodes the parameters of an action.
func decoded[In any](run func(*request, *In) (outcome, error)) func(*request) (outcome, error) {
	return func(q *request) (outcome, error) {
		in := new(In)
		err := q.wire.decode(in)
		if q.wire.body, q.wire.form = nil, nil; err != nil { // nobody needs them again, and a poll waits for long
			return outcome{}, err
		}
		return run(q, in)
	}
}

// plain makes the run of an action that has its result at once.
func plain[In any](run func(*request, *In) (any, error)) func(*request) (outcome, error) {
	return decoded(func(q *request, in *In) (out outcome, err error) {
		out.result, err = run(q, in)
		return out, err
	})
}

// target is the part of requests that names a queue.
type target struct {
	QueueURL string `json:"QueueUrl" query:"QueueUrl"`
}

func (t *target) queueURL() string { return t.QueueURL }

// queueInput is the parameters of an action on a queue.
type queueInput[In any] interface {
	*In
	queueURL() string
}

// on makes the command of an action on a queue, for callers with one of the roles. The action has its result at once.
func on[In any, P queueInput[In]](roles []access.Role, run func(*request, *queue, *In) (any, error)) command {
	return command{run: decoded(ofQueue[In, P](roles, func(q *request, of *queue, in *In) (out outcome, err error) {
		out.result, err = run(q, of, in)
		return out, err
	}))}
}

// ofQueue finds the queue of an action, for callers with one of the roles.
func ofQueue[In any, P queueInput[In]](
	roles []access.Role, run func(*request, *queue, *In) (outcome, error),
) func(*request, *In) (outcome, error) {
	return func(q *request, in *In) (out outcome, err error) {
		name := queueName(P(in).queueURL())
		if name == "" {
			name = queueName(q.wire.pathURL)
		}
		if name == "" {
			return out, missing("QueueUrl")
		}
		if err := q.mayOne(roles, name); err != nil {
			return out, err
		}
		queue, err := q.find(name)
		if err != nil {
			return out, err
		}
		return run(q, queue, in)
	}
}

// mayUse reports whether a caller may know that a queue exists.
func (q *request) mayUse(name string) bool {
	return slices.ContainsFunc(anyRole,
		func(r access.Role) bool { return q.from.principal.May(r, q.front.coreName(name)) })
}

// mayOne refuses a caller that has none of the roles for a queue.
func (q *request) mayOne(roles []access.Role, name string) error {
	for _, role := range roles {
		if q.front.guard.Control().Revoked(q.from.principal) {
			break
		}
		if q.from.principal.May(role, q.front.coreName(name)) {
			return nil
		}
	}
	return q.front.forbid(name)
}
