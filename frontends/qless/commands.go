package qless

// command is one operation of the script. Its reply is nil, true, a number, a string or a list of strings.
type command func(*tx, *input) (any, error)

// commands are the operations by name.
var commands = map[string]command{
	"put":               put,
	"requeue":           requeue,
	"get":               get,
	"multiget":          multiget,
	"pop":               pop,
	"peek":              peek,
	"complete":          completeCommand,
	"fail":              fail,
	"retry":             retry,
	"heartbeat":         heartbeat,
	"timeout":           timeout,
	"cancel":            cancel,
	"depends":           dependsCommand,
	"priority":          priority,
	"tag":               tag,
	"track":             track,
	"failed":            failedCommand,
	"unfail":            unfail,
	"jobs":              jobs,
	"queues":            queues,
	"length":            length,
	"pause":             pause,
	"unpause":           unpause,
	"queue.forget":      forgetQueues,
	"worker.deregister": deregister,
	"stats":             stats,
	"workers":           workersCommand,
	"config.get":        configGet,
	"config.set":        configSet,
	"config.unset":      configUnset,
	"log":               logCommand,
	"recur":             recur,
	"recur.get":         recurGet,
	"unrecur":           unrecur,
	"recur.update":      recurUpdate,
	"recur.tag":         recurTag,
	"recur.untag":       recurUntag,
}

// lookUp finds the command of a call and its now.
func lookUp(argv []string) (run command, now float64, a args, err error) {
	if len(argv) == 0 {
		return nil, 0, nil, fault("Must provide a command")
	}
	run, known := commands[argv[0]]
	if !known {
		return nil, 0, nil, fault("Unknown command %s", argv[0])
	}
	if len(argv) > 1 {
		if f, ok := parseNumber(argv[1]); ok {
			return run, f, argv[2:], finite(f)
		}
	}
	return nil, 0, nil, fault(`Arg "now" missing or not a number: nil`)
}
