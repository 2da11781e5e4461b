package process

import (
	"context"
	"net/url"
	"time"

	"broker/core"
	"broker/operate/push"
	"broker/operate/service"
)

// openPush starts to push jobs to the targets of the settings.
func (t *term) openPush() {
	t.pusher = push.New(push.Options{
		Broker: t.broker, Version: t.Version,
		Failed: func(target string, err error) {
			if err == nil {
				t.log.Info().Str("target", target).Msg("push target can be reached again")
				return
			}
			t.log.Warn().Err(err).Str("target", target).Msg("push target cannot be reached")
		},
	})
	t.setPush()
}

// setPush applies the targets of the settings.
func (t *term) setPush() {
	targets := make([]push.Target, len(t.config.Pushes))
	for i := range t.config.Pushes {
		c := &t.config.Pushes[i]
		targets[i] = push.Target{
			Name: c.Name, Queues: c.Queues, URL: c.URL, Concurrency: c.Concurrency, Rate: c.Rate, Timeout: c.Timeout,
			Secret:  c.Secret,
			Headers: c.Headers, CA: c.CAPEM,
		}
	}
	if err := t.pusher.Set(targets); err != nil {
		t.log.Error().Err(err).Msg("push targets refused, keeping the old ones")
	}
}

// closePush stops pushing new jobs, and waits for answers until the context ends. Then it closes the channel.
func (t *term) closePush(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	if t.pusher == nil {
		close(done)
		return done
	}
	go func() { // the caller waits for it
		t.pusher.Close(ctx)
		close(done)
	}()
	return done
}

// PushTargets returns the targets with their counters.
func (t *term) PushTargets() []service.PushTarget {
	if t.pusher == nil {
		return nil // pushing starts after the service
	}
	all := t.pusher.Status()
	targets := make([]service.PushTarget, len(all))
	for i := range all {
		s := &all[i]
		targets[i] = service.PushTarget{
			Name: s.Name, URL: withoutQuery(s.URL), Queues: s.Queues, Worker: s.Worker(), Concurrency: s.Concurrency,
			RatePerS: s.Rate,
			InFlight: s.InFlight, Done: s.Counts[push.Done], Failed: s.Counts[push.Failed],
			Deferred:    s.Counts[push.Deferred],
			Unreachable: s.Counts[push.Unreachable], Late: s.Counts[push.Late], Seconds: s.Seconds,
			LastError:   s.LastError,
			LastErrorAt: instantOrNil(s.LastErrorAt), PausedUntil: instantOrNil(s.PausedUntil),
		}
	}
	return targets
}

func instantOrNil(at core.Instant) *time.Time {
	if at == 0 {
		return nil
	}
	t := at.Time()
	return &t
}

// withoutQuery drops the part of a URL that may contain a secret.
func withoutQuery(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	u.RawQuery, u.ForceQuery = "", false
	return u.String()
}
