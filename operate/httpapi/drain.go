package httpapi

import "broker/core"

// Drain stops or resumes handing out or admitting jobs, on behalf of the process. Before the server is ready, it does
// nothing.
func (s *Server) Drain(on, refuseJobs bool) {
	b := s.backend.Load()
	if b == nil {
		return
	}
	for _, r := range core.DoOnce(b.Broker, core.Internal, &core.Drain{On: on, RefuseJobs: refuseJobs}) {
		if r.Err != nil {
			s.options.Log.Error().Err(r.Err).Msg("cannot drain")
			return
		}
	}
	switch {
	case !on && refuseJobs:
		s.options.Log.Info().Msg("draining, new jobs are refused")
		return
	case !on:
		s.options.Log.Info().Msg("jobs are handed out again")
		return
	}
	_, leased := drainState(b)
	s.options.Log.Info().Bool("refuse_jobs", refuseJobs).Int("leased", leased).Msg("draining, no job is handed out")
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
