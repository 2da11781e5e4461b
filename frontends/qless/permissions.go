package qless

import (
	"cmp"

	"broker/access"
)

func queueAt(i int) func(*model, args) []string {
	return func(_ *model, a args) []string { return a.from(i).first() }
}

// first returns the first argument, if there is one. Appending to the result does not overwrite the other arguments.
func (a args) first() []string {
	n := min(len(a), 1)
	return a[:n:n]
}

func names(_ *model, a args) []string { return a }

// queuesOf returns the queues of jobs. It skips jobs without a queue.
func (m *model) queuesOf(jids []string) (queues []string) {
	for _, jid := range jids {
		if j := m.jobs.get(jid); j != nil && j.queue != "" {
			queues = append(queues, j.queue)
		}
	}
	return queues
}

func jobQueues(i int) func(*model, args) []string {
	return func(m *model, a args) []string { return m.queuesOf(a.from(i).first()) }
}

func allJobQueues(m *model, a args) []string { return m.queuesOf(a) }

// putQueues returns the queues that a put affects: the new queue, the old queue of the job, and the queues of its
// dependencies, because a job on which another job depends cannot be cancelled.
func putQueues(m *model, a args) []string {
	queues := append(a.from(1).first(), m.queuesOf(a.from(2).first())...)
	return append(queues, m.dependencyQueues(a.from(6))...)
}

// dependencyQueues returns the queues of the jobs in the option depends.
func (m *model) dependencyQueues(options args) []string {
	var in input
	jids := in.optionalList(options.options(), "depends", nil, "")
	if in.err != nil {
		return nil // the call is refused anyway
	}
	return m.queuesOf(jids)
}

// dependsQueues returns the queues of a job and of the dependencies that the call adds or removes.
func dependsQueues(m *model, a args) []string {
	return append(m.queuesOf(a.first()), m.queuesOf(a.from(2))...)
}

// recurQueues returns the queues of a definition and of the definition that it replaces.
func recurQueues(m *model, a args) []string {
	return append(a.first(), recurringQueue(m, a.from(1))...)
}

// recurUpdateQueues returns the queue of a definition and its new queues.
func recurUpdateQueues(m *model, a args) []string {
	queues := recurringQueue(m, a)
	for i := 1; i+1 < len(a); i += 2 {
		if a[i] == "queue" {
			queues = append(queues, a[i+1])
		}
	}
	return queues
}

// unfailQueues returns the new queue of the failed jobs, and their old queues.
func unfailQueues(m *model, a args) []string {
	queues := a.first()
	in := input{args: a}
	if count := in.numberOr(2, unfailCount, ""); in.err == nil {
		queues = append(queues, m.queuesOf(m.unfailed(a.text(1), count))...)
	}
	return queues
}

func retryQueues(m *model, a args) []string {
	return append(a.from(1).first(), m.queuesOf(a.first())...)
}

func completeQueues(m *model, a args) []string {
	queues := m.queuesOf(a.first())
	if next, ok := a.from(4).options()["next"]; ok {
		queues = append(queues, next)
	}
	return append(queues, m.dependencyQueues(a.from(4))...)
}

func tagQueues(m *model, a args) []string { return m.queuesOf(a.from(1).first()) }

func recurringQueue(m *model, a args) []string {
	if r := m.recurring[a.text(0)]; r != nil {
		return []string{r.queue}
	}
	return nil
}

// mayCall reports whether the client may call an operation, inside enter.
func (s *session) mayCall(argv []string) bool {
	if !s.front.broker.Control().Enabled() || len(argv) == 0 {
		return true
	}
	c, known := commands[argv[0]]
	if !known {
		return true // it is refused anyway
	}
	if argv[0] == "tag" || argv[0] == "track" {
		c = readOnlyForm(c, argv)
	}
	var queues []string
	a := args(argv[min(len(argv), 2):])
	if c.queues != nil {
		queues = c.queues(s.front.model, a)
	}
	for _, q := range queues {
		if !s.AllowedFor(c.role, s.front.coreQueue(q)) {
			return false
		}
	}
	if routed := s.front.routedTo(argv[0], a); routed != "" &&
		!s.AllowedFor(c.role, routed) {
		return false
	}
	return len(queues) > 0 || s.Allowed(c.role)
}

// routedTo is the broker's name of the queue into which a new job is routed; empty: it is not routed.
func (f *Frontend) routedTo(operation string, a args) string {
	if f.opts.Route == nil {
		return ""
	}
	queue, klass := "", ""
	switch operation {
	case "put", "requeue":
		queue, klass = a.text(1), a.text(3)
	case "recur":
		queue, klass = a.text(0), a.text(2)
	case "recur.update":
		if r := f.model.recurring[a.text(0)]; r != nil {
			o := a.from(1).options()
			queue, klass = cmp.Or(o["queue"], r.queue), cmp.Or(o["klass"], r.klass)
		}
	}
	if queue == "" {
		return ""
	}
	if to, _ := f.opts.Route(queue, klass); to != queue {
		return to
	}
	return ""
}

// readOnlyForm lowers the role for tag get, tag top, and track without arguments.
func readOnlyForm(c command, argv []string) command {
	action := args(argv).text(2)
	if argv[0] == "tag" && (action == "get" || action == "top") || argv[0] == "track" && action == "" {
		return command{role: access.Read}
	}
	return c
}

// mayRun reports whether the client may run a Redis command.
func (s *session) mayRun(c redisCommand) bool {
	return len(c.Roles) == 0 || !s.front.broker.Control().Enabled() || s.Allowed(c.Roles[0])
}
