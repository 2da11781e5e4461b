package main

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"broker/config"
	"broker/core"
)

// live is the time in which settings may change under clients. It guards them.
type reloadGuard struct {
	sync.Mutex
	serving bool
}

func (l *reloadGuard) begin() { l.set(true) }
func (l *reloadGuard) end()   { l.set(false) }

func (l *reloadGuard) set(serving bool) {
	l.Lock()
	l.serving = serving
	l.Unlock()
}

// reload reads the settings and the certificates again, and puts into force what may change while clients are served.
// Settings that are not good change nothing.
func (p *process) reload() {
	p.reloads.Lock()
	defer p.reloads.Unlock()
	if !p.reloads.serving {
		p.log.Warn().Msg("settings are read again only while clients are served")
		return
	}
	fresh := p.config
	if p.reread != nil {
		read, err := p.reread()
		if err != nil {
			p.logProblems(err)
		} else {
			fresh = read
		}
	}
	p.apply(&fresh)
	p.reloadCertificates()
	p.log.Info().Msg("settings read again")
}

// complain writes one line for each problem.
func (p *process) logProblems(err error) {
	problems := []error{err}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		problems = all.Unwrap()
	}
	for _, problem := range problems {
		p.log.Error().Err(problem).Msg("bad setting")
	}
	p.log.Error().Msg("bad settings, the old ones stay in force")
}

// apply makes of the settings in force what it can of the fresh ones, and says of the others that they have to wait.
func (p *process) apply(fresh *config.Config) {
	for _, s := range fresh.Changed(&p.config) {
		if !p.reloadable(s.Path, fresh) {
			p.log.Warn().Str("setting", s.Path).Msg("changed, but needs a restart")
			continue
		}
		s.CopyTo(&p.config)
		p.log.Info().Str("setting", s.Path).Msg("changed")
	}
	setLogLevel(p.config.Log.Level)
	if !reflect.DeepEqual(p.config.Routes, fresh.Routes) {
		p.config.Routes = fresh.Routes
		p.routes.load(&p.config)
		p.routeEpoch.Add(1)
		p.log.Info().Int("routes", len(fresh.Routes)).Msg("routes changed")
	}
	p.applyThrottles(p.config.Throttles, fresh.Throttles)
	p.config.Throttles = fresh.Throttles
	p.config.Crons = fresh.Crons
	p.scheduler.load(p.config.Crons)
}

// reloadable reports that a setting can take another value now. TLS cannot be switched on or off on a port.
func (p *process) reloadable(path string, fresh *config.Config) bool {
	if path == "log.level" {
		return p.reread != nil
	}
	section, name, _ := strings.Cut(path, ".")
	if !strings.HasPrefix(name, "tls_") {
		return false
	}
	return slices.ContainsFunc(p.certificates, func(c *certificates) bool {
		return c.name == section && certificateOf(fresh, section).TLSCert != ""
	})
}

// certificateOf finds the TLS settings of a port: of a protocol, else of HTTP.
func certificateOf(c *config.Config, name string) config.Protocol {
	for _, f := range protocols(c) {
		if f.name == name {
			return f.Protocol
		}
	}
	return config.Protocol{TLSCert: c.HTTP.TLSCert, TLSKey: c.HTTP.TLSKey, TLSClientCA: c.HTTP.TLSClientCA}
}

// reloadCertificates reads the files again.
func (p *process) reloadCertificates() {
	for _, c := range p.certificates {
		c.source = certificateOf(&p.config, c.name)
		if err := c.reload(); err != nil {
			p.log.Error().Err(err).Msg("the old certificate stays in force")
		}
	}
}

// throttle gives the queues the bounds of the settings.
func (p *process) applyThrottles(old, fresh map[string]config.Throttle) {
	all := maps.Clone(old)
	if all == nil {
		all = make(map[string]config.Throttle)
	}
	maps.Copy(all, fresh)
	var ops []core.Op
	for _, queue := range slices.Sorted(maps.Keys(all)) {
		t, wanted := fresh[queue]
		before, had := old[queue]
		if had && wanted && t == before {
			continue
		}
		ops = append(ops, &core.ThrottleQueue{Queue: queue, Throttle: core.Throttle{
			Leased: uint32(t.Concurrency), LeasedPerWorker: uint32(t.Worker), SlotFor: t.Timeout,
		}})
		p.log.Info().Str("queue", queue).Int("concurrency", t.Concurrency).Int("worker", t.Worker).
			Dur("timeout_ms", t.Timeout).Msg(map[bool]string{true: "throttle set", false: "throttle lifted"}[wanted])
	}
	if len(ops) == 0 {
		return
	}
	core.DoOnce(p.engine, core.Internal, ops...)
}

// rewrite is what routes make of a queue and a type.
type routeFunc = func(queue, typ string) (string, string)

// routes are the rewriting rules of each protocol, replaced when they are read again.
type routes map[string]*atomic.Pointer[routeFunc]

// of is a rule that always does what the settings in force say.
func (r routes) of(protocol string, c *config.Config) routeFunc {
	current := &atomic.Pointer[routeFunc]{}
	r[protocol] = current
	r.load(c)
	return func(queue, typ string) (string, string) {
		if do := *current.Load(); do != nil {
			return do(queue, typ)
		}
		return queue, typ
	}
}

// load puts the routes of c into force.
func (r routes) load(c *config.Config) {
	for protocol, current := range r {
		do := c.Rewrite(protocol)
		current.Store(&do)
	}
}
