package main

import (
	"context"
	"net/url"
	"reflect"
	"time"

	"broker/config"
	"broker/core"
	"broker/operate/push"
	"broker/operate/service"
)

// openPush starts to push jobs to the targets of the settings.
func (p *process) openPush() {
	p.pusher = push.New(push.Options{
		Broker: p.broker, Version: buildVersion(),
		Failed: func(target string, err error) {
			if err == nil {
				p.log.Info().Str("target", target).Msg("push target can be reached again")
				return
			}
			p.log.Warn().Err(err).Str("target", target).Msg("push target cannot be reached")
		},
	})
	p.setPush()
}

// setPush puts the targets of the settings into force.
func (p *process) setPush() {
	targets := make([]push.Target, len(p.config.Pushes))
	for i := range p.config.Pushes {
		c := &p.config.Pushes[i]
		targets[i] = push.Target{
			Name: c.Name, Queues: c.Queues, URL: c.URL, Concurrency: c.Concurrency, Rate: c.Rate, Timeout: c.Timeout, Secret: c.Secret,
			Headers: c.Headers, CA: c.CAPEM,
		}
	}
	if err := p.pusher.Set(targets); err != nil {
		panic(err) // the settings are validated
	}
}

// applyPush replaces the targets by those of fresh settings.
func (p *process) applyPush(fresh *config.Config) {
	if reflect.DeepEqual(p.config.Pushes, fresh.Pushes) {
		return
	}
	p.config.Pushes = fresh.Pushes
	p.setPush()
	p.log.Info().Int("targets", len(fresh.Pushes)).Msg("push targets changed")
}

// closePush takes no more jobs to push, and waits for answers until the context ends. The channel is closed then.
func (p *process) closePush(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	if p.pusher == nil {
		close(done)
		return done
	}
	go func() { // the caller waits for it
		p.pusher.Close(ctx)
		close(done)
	}()
	return done
}

// pushTargets are the targets with what they do.
func (p *process) pushTargets() []service.PushTarget {
	if p.pusher == nil {
		return nil // they start after the service
	}
	all := p.pusher.Status()
	targets := make([]service.PushTarget, len(all))
	for i := range all {
		s := &all[i]
		targets[i] = service.PushTarget{
			Name: s.Name, URL: withoutQuery(s.URL), Queues: s.Queues, Worker: s.Worker(), Concurrency: s.Concurrency, RatePerS: s.Rate,
			InFlight: s.InFlight, Done: s.Counts[push.Done], Failed: s.Counts[push.Failed], Deferred: s.Counts[push.Deferred],
			Unreachable: s.Counts[push.Unreachable], Late: s.Counts[push.Late], Seconds: s.Seconds, LastError: s.LastError,
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

// withoutQuery drops the part of a URL that may hold a secret.
func withoutQuery(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	u.RawQuery, u.ForceQuery = "", false
	return u.String()
}
