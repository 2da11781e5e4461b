package beanstalk

// task is a long command. It runs in steps, one in each turn of the event loop, so that other connections are served in
// between. The connection reads no further command until the task is answered.
type task interface {
	// step does the next part. It reports whether the command is answered; if not, it has made sure that another turn
	// comes.
	step(s *session) (over bool)

	// stop answers the command with what is done so far.
	stop(s *session)
}

// start starts a long command.
func (s *session) start(t task) {
	s.task = t
	s.stepTask()
}

// stepTask does the next step of the running command.
func (s *session) stepTask() {
	if s.task.step(s) {
		s.task = nil
	}
}

// stopTask answers the running command early.
func (s *session) stopTask() {
	if t := s.task; t != nil {
		s.task = nil
		t.stop(s)
	}
}
