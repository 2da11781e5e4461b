package main

import (
	"broker/operate/otlp"
)

// openTracing starts to send spans, if a collector is configured.
func (p *process) openTracing() (err error) {
	c := p.config.Tracing
	if c.Endpoint == "" {
		return nil
	}
	p.tracing, err = otlp.Open(otlp.Options{
		Broker: p.engine, Endpoint: c.Endpoint, Service: c.Service, Version: buildVersion(),
		Failed: func(err error) {
			if err == nil {
				p.log.Info().Msg("spans are sent again")
				return
			}
			p.log.Warn().Err(err).Msg("spans cannot be sent")
		},
	})
	return err
}

// spanCounts counts the spans that were sent and dropped.
func (p *process) spanCounts() (sent, dropped uint64, on bool) {
	if p.tracing == nil {
		return 0, 0, false
	}
	sent, dropped = p.tracing.Counts()
	return sent, dropped, true
}
