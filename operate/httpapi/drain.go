package httpapi

import "broker/core"

// Drain starts or ends a drain on behalf of the process, as configured. Before the server is ready, it does nothing.
func (s *Server) Drain(on bool) {
	b := s.backend.Load()
	if b == nil {
		return
	}
	op := b.Service.DrainOp(on, nil)
	if !s.apply(b, op) {
		return
	}
	if !on {
		s.options.Log.Info().Msg("jobs are handed out again")
		return
	}
	_, leased := drainState(b)
	s.options.Log.Info().Bool("refuse_jobs", op.RefuseJobs).Int("leased", leased).Msg("draining, no job is handed out")
}

// RefuseJobs refuses new jobs, or accepts them again, on behalf of the process. Jobs are handed out. Before the server
// is ready, it does nothing.
func (s *Server) RefuseJobs(on bool) {
	b := s.backend.Load()
	if b == nil || !s.apply(b, &core.Drain{RefuseJobs: on}) {
		return
	}
	if on {
		s.options.Log.Info().Msg("draining, new jobs are refused")
	} else {
		s.options.Log.Info().Msg("jobs are handed out again")
	}
}

func (s *Server) apply(b *Backend, op *core.Drain) bool {
	for _, r := range core.DoOnce(b.Broker, core.Internal, op) {
		if r.Err != nil {
			s.options.Log.Error().Err(r.Err).Msg("cannot drain")
			return false
		}
	}
	return true
}

// drainState reads whether the broker is draining, and how many jobs are still running.
func drainState(b *Backend) (draining bool, leased int) {
	for _, r := range core.DoOnce(b.Broker, core.Internal, &core.ReadStats{}) {
		if r.Stats != nil {
			return r.Stats.Draining, r.Stats.Jobs[core.Leased]
		}
	}
	return false, 0
}
