package beanstalk

import "broker/core"

// queuesOfStep is the number of queues that one turn reads.
const queuesOfStep = 1000

// queueWalk reads all queues of the front-end, for a command that needs them.
type queueWalk struct {
	ask    func(ops ...core.Op) []core.Reply // as the session's client, which the commit of the replies wakes
	after  string
	commit core.Commit // of the replies
	each   func(*core.QueueInfo)
	finish func(s *session, commit core.Commit) // answers the command
}

// step implements task.
func (w *queueWalk) step(s *session) (over bool) {
	op := &core.ListQueues{Tag: 1, Prefix: s.front.opts.Namespace, After: w.after, Limit: queuesOfStep}
	for _, r := range w.ask(op) {
		if r.Kind == core.Failed {
			s.Conn.Out().WriteString(errorText(r.Err, false))
			return true
		}
		w.commit = max(w.commit, r.Commit)
		for i := range r.Queues {
			w.each(&r.Queues[i])
		}
		if n := len(r.Queues); n == queuesOfStep {
			w.after = r.Queues[n-1].Name
			s.Conn.Wake()
			return false
		}
	}
	w.finish(s, w.commit)
	return true
}

// stop implements task.
func (w *queueWalk) stop(s *session) { w.finish(s, w.commit) }
