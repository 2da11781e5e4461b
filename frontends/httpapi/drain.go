package httpapi

import (
	"broker/core"
)

// Drain stops or resumes handing out jobs. Before the server is ready there is nothing to stop.
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
	s.draining.Store(on)
	if on {
		s.options.Log.Info().Bool("refuse_jobs", refuseJobs).Int("leased", s.leased(b)).
			Msg("draining, no job is handed out")
		return
	}
	s.options.Log.Info().Msg("jobs are handed out again")
}

// leased is how many jobs are in workers' hands.
func (s *Server) leased(b *Backend) int {
	stats, _ := s.metrics.read(b.Broker)
	if stats == nil {
		return 0
	}
	return stats.Jobs[core.Leased]
}

// drain is the order to hand out no more jobs.
func (s *Server) drain(body []byte) (any, error) {
	ask := struct {
		RefuseJobs bool `json:"refuse_jobs"`
	}{s.options.DrainRejectsNewJobs}
	if err := decode(body, &ask); err != nil {
		return nil, err
	}
	s.Drain(true, ask.RefuseJobs)
	return s.drainState(), nil
}

// resume is the order to go on.
func (s *Server) resume([]byte) (any, error) {
	s.Drain(false, false)
	return s.drainState(), nil
}

func (s *Server) drainState() any {
	return map[string]any{"draining": s.draining.Load(), "leased": s.leased(s.backend.Load())}
}
