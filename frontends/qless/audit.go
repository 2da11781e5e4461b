package qless

import (
	"strings"

	"broker/access"
)

// audited lists the calls that are written to the audit log, by operation: the operators' changes to queues, jobs and
// settings. It leaves out calls that only change how jobs are found (tag, track), and calls of workers that end
// (worker.deregister).
var audited = map[string]func(*Frontend, args) access.Change{
	"pause":        onQueues("queue.pause"),
	"unpause":      onQueues("queue.resume"),
	"queue.forget": onQueues("queue.remove"),
	"cancel":       onJobs("job.cancel"),
	"timeout":      onJobs("job.timeout"),
	"priority": func(_ *Frontend, a args) access.Change {
		return access.Change{Action: "job.priority", Target: a.text(0), Detail: a.text(1)}
	},
	"unfail": func(f *Frontend, a args) access.Change {
		return access.Change{Action: "jobs.retry", Target: f.coreQueue(a.text(0)), Detail: "group " + a.text(1)}
	},
	"config.set": func(_ *Frontend, a args) access.Change {
		return access.Change{Action: "config.set", Target: a.text(0), Detail: a.text(1)}
	},
	"config.unset": func(_ *Frontend, a args) access.Change {
		return access.Change{Action: "config.unset", Target: a.text(0)}
	},
}

func onQueues(action string) func(*Frontend, args) access.Change {
	return func(f *Frontend, a args) access.Change {
		names := make([]string, len(a))
		for i, name := range a {
			names[i] = f.coreQueue(name)
		}
		return access.Change{Action: action, Target: strings.Join(names, " ")}
	}
}

func onJobs(action string) func(*Frontend, args) access.Change {
	return func(_ *Frontend, a args) access.Change {
		return access.Change{Action: action, Target: strings.Join(a, " ")}
	}
}

// noteCall reports a successful call for the audit log.
func (s *session) noteCall(argv []string) {
	if change, ok := audited[argv[0]]; ok && s.front.opts.Audit != nil {
		s.noteChange(change(s.front, args(argv[2:])))
	}
}

// noteChange reports a change for the audit log.
func (s *session) noteChange(c access.Change) {
	s.Note(s.front.opts.Audit, c)
}
