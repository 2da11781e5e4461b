package qless

import "broker/access"

// command is one operation of the script.
type command struct {
	run    func(*tx, *input) (any, error) // its reply is nil, true, a number, a string or a list of strings
	role   access.Role                    // needed for each of the queues; without a queue: for all queues
	queues func(*model, args) []string    // the queues that a call affects; nil: none
}

// commands are the operations by name.
var commands = map[string]command{
	"put":               {put, access.Produce, putQueues},
	"requeue":           {requeue, access.Produce, putQueues},
	"get":               {get, access.Read, jobQueues(0)},
	"multiget":          {multiget, access.Read, allJobQueues},
	"pop":               {pop, access.Consume, queueAt(0)},
	"peek":              {peek, access.Read, queueAt(0)},
	"complete":          {completeCommand, access.Consume, completeQueues},
	"fail":              {fail, access.Consume, jobQueues(0)},
	"retry":             {retry, access.Consume, retryQueues},
	"heartbeat":         {heartbeat, access.Consume, jobQueues(0)},
	"timeout":           {timeout, access.Operate, allJobQueues},
	"cancel":            {cancel, access.Operate, allJobQueues},
	"depends":           {dependsCommand, access.Produce, dependsQueues},
	"priority":          {priority, access.Operate, jobQueues(0)},
	"tag":               {tag, access.Operate, tagQueues},
	"track":             {track, access.Operate, jobQueues(1)},
	"failed":            {failedCommand, access.Read, nil},
	"unfail":            {unfail, access.Operate, unfailQueues},
	"jobs":              {jobs, access.Read, queueAt(1)},
	"queues":            {queues, access.Read, queueAt(0)},
	"length":            {length, access.Read, queueAt(0)},
	"pause":             {pause, access.Operate, names},
	"unpause":           {unpause, access.Operate, names},
	"queue.forget":      {forgetQueues, access.Operate, names},
	"worker.deregister": {deregister, access.Operate, nil},
	"stats":             {stats, access.Read, queueAt(0)},
	"workers":           {workersCommand, access.Read, nil},
	"config.get":        {configGet, access.Read, nil},
	"config.set":        {configSet, access.Operate, nil},
	"config.unset":      {configUnset, access.Operate, nil},
	"log":               {logCommand, access.Consume, jobQueues(0)},
	"recur":             {recur, access.Produce, recurQueues},
	"recur.get":         {recurGet, access.Read, recurringQueue},
	"unrecur":           {unrecur, access.Produce, recurringQueue},
	"recur.update":      {recurUpdate, access.Produce, recurUpdateQueues},
	"recur.tag":         {recurTag, access.Produce, recurringQueue},
	"recur.untag":       {recurUntag, access.Produce, recurringQueue},
}

// lookUp finds the command of a call and its now.
func lookUp(argv []string) (c command, now float64, a args, err error) {
	if len(argv) == 0 {
		return c, 0, nil, fault("Must provide a command")
	}
	c, known := commands[argv[0]]
	if !known {
		return c, 0, nil, fault("Unknown command %s", argv[0])
	}
	if len(argv) > 1 {
		if f, ok := parseNumber(argv[1]); ok {
			return c, f, argv[2:], finite(f)
		}
	}
	return c, 0, nil, fault(`Arg "now" missing or not a number: nil`)
}
