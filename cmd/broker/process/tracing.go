package process

import (
	"time"

	"broker/operate/otlp"
)

// openTracing starts to send spans, if a collector is configured.
func (t *term) openTracing() (err error) {
	c := t.config.Tracing
	if c.Endpoint == "" {
		return nil
	}
	t.tracing, err = otlp.Open(otlp.Options{
		Broker: t.engine, Endpoint: c.Endpoint, Service: c.Service, Version: t.Version,
		Failed: func(err error) {
			if err == nil {
				t.log.Info().Msg("spans are sent again")
				return
			}
			t.log.Warn().Err(err).Msg("spans cannot be sent")
		},
	})
	return err
}

// SpanCounts counts the spans that were sent and dropped.
func (t *term) SpanCounts() (sent, dropped uint64, on bool) {
	if t.tracing == nil {
		return 0, 0, false
	}
	sent, dropped = t.tracing.Counts()
	return sent, dropped, true
}

// closeTracing sends the spans that are left, for so long.
func (t *term) closeTracing(within time.Duration) {
	if t.tracing == nil {
		return
	}
	sent := make(chan struct{})
	go func() { // ends within the timeout of a request
		t.tracing.Close()
		close(sent)
	}()
	select {
	case <-sent:
	case <-time.After(within):
	}
}
