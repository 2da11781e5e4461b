package sqs

import (
	"slices"

	"broker/access"
)

// command describes an action of the API.
type command struct {
	run     func(*request) (any, error)
	noQueue bool // not allowed with Query on a queue's path
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
	"ListQueues":         {run: plain((*request).listQueues), noQueue: true},
	"GetQueueUrl":        {run: plain((*request).getQueueURL)},
	"DeleteQueue":        on(operate, (*request).deleteQueue),
	"PurgeQueue":         on(operate, (*request).purgeQueue),
	"GetQueueAttributes": on(anyRole, (*request).getQueueAttributes),
	"SetQueueAttributes": on(operate, (*request).setQueueAttributes),
	"TagQueue":           on(operate, (*request).tagQueue),
	"UntagQueue":         on(operate, (*request).untagQueue),
	"ListQueueTags":      on(read, (*request).listQueueTags),
	"AddPermission":      on(operate, (*request).addPermission),
	"RemovePermission":   on(operate, (*request).removePermission),

	"SendMessage":      on(produce, (*request).sendMessage),
	"SendMessageBatch": on(produce, (*request).sendMessageBatch),

	"ReceiveMessage":               on(consume, (*request).receiveMessage),
	"DeleteMessage":                on(consume, (*request).deleteMessage),
	"DeleteMessageBatch":           on(consume, (*request).deleteMessageBatch),
	"ChangeMessageVisibility":      on(consume, (*request).changeVisibility),
	"ChangeMessageVisibilityBatch": on(consume, (*request).changeVisibilityBatch),

	"ListDeadLetterSourceQueues": on(read, (*request).listSources),
	"StartMessageMoveTask":       {run: plain((*request).startMoveTask)},
	"ListMessageMoveTasks":       {run: plain((*request).listMoveTasks)},
	"CancelMessageMoveTask":      {run: plain((*request).cancelMoveTask)},
}

// plain decodes the parameters of an action.
func plain[In any](run func(*request, *In) (any, error)) func(*request) (any, error) {
	return func(q *request) (any, error) {
		in := new(In)
		err := q.wire.decode(in)
		if q.wire.body, q.wire.form = nil, nil; err != nil { // nobody needs them again, and a poll waits for long
			return nil, err
		}
		return run(q, in)
	}
}

// target is the part of requests that names a queue.
type target struct {
	QueueURL string `json:"QueueUrl" query:"QueueUrl"`
}

func (t *target) queueURL() string { return t.QueueURL }

// on makes the command of an action on a queue, for callers with one of the roles.
func on[In any, P interface {
	*In
	queueURL() string
}](roles []access.Role, run func(*request, *queue, *In) (any, error),
) command {
	return command{run: plain(func(q *request, in *In) (any, error) {
		name := queueName(P(in).queueURL())
		if name == "" {
			name = queueName(q.wire.pathURL)
		}
		if name == "" {
			return nil, missing("QueueUrl")
		}
		if err := q.mayOne(roles, name); err != nil {
			return nil, err
		}
		queue, err := q.find(name)
		if err != nil {
			return nil, err
		}
		return run(q, queue, in)
	})}
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
