package console

import (
	"broker/core"
)

// Drain stops or resumes handing out jobs. Before the console is ready there is nothing to stop.
func (c *Console) Drain(on, refuseJobs bool) {
	b := c.backend.Load()
	if b == nil {
		return
	}
	client := b.Broker.Open(core.ClientOptions{Protocol: core.Internal, Wake: func() {}})
	defer b.Broker.Close(client)
	for _, r := range b.Broker.Do(client, []core.Op{&core.Drain{On: on, RefuseJobs: refuseJobs}}, nil) {
		if r.Err != nil {
			c.options.Log.Error().Err(r.Err).Msg("cannot drain")
			return
		}
	}
	c.draining.Store(on)
	if on {
		c.options.Log.Info().Bool("refuse_jobs", refuseJobs).Int("leased", c.leased(b)).
			Msg("draining, no job is handed out")
		return
	}
	c.options.Log.Info().Msg("jobs are handed out again")
}

// leased is how many jobs are in workers' hands.
func (c *Console) leased(b *Backend) int {
	stats, _ := c.metrics.read(b.Broker)
	if stats == nil {
		return 0
	}
	return stats.Jobs[core.Leased]
}

// drain is the order to hand out no more jobs.
func (c *Console) drain(body []byte) (any, error) {
	ask := struct {
		RefuseJobs bool `json:"refuse_jobs"`
	}{c.options.DrainRejectsNewJobs}
	if err := decode(body, &ask); err != nil {
		return nil, err
	}
	c.Drain(true, ask.RefuseJobs)
	return c.drainState(), nil
}

// resume is the order to go on.
func (c *Console) resume([]byte) (any, error) {
	c.Drain(false, false)
	return c.drainState(), nil
}

func (c *Console) drainState() any {
	return map[string]any{"draining": c.draining.Load(), "leased": c.leased(c.backend.Load())}
}
