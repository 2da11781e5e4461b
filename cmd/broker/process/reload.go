package process

import (
	"cmp"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"broker/config"
	"broker/core"
)

// allowReloads allows reloads, and reports whether one was requested too early.
func (p *Process) allowReloads() (requested bool) {
	p.reloads.Lock()
	defer p.reloads.Unlock()
	p.serving = true
	return p.requested
}

// forbidReloads waits for a reload in progress.
func (p *Process) forbidReloads() {
	p.reloads.Lock()
	p.serving, p.term = false, nil
	p.reloads.Unlock()
}

// errNotServing is the answer to a reload before or after clients are served.
var errNotServing = errors.New("reload waits until clients are served")

// Reload reads the settings and the certificates again and applies them. If a setting is invalid, or has changed and
// needs a restart, no setting changes.
func (p *Process) Reload() error {
	p.reloads.Lock()
	defer p.reloads.Unlock()
	if !p.serving {
		p.requested = true // the settings may have changed since the start read them
		p.log.Warn().Msg(errNotServing.Error())
		return errNotServing
	}
	fresh, err := p.readAgain()
	if err != nil {
		p.reloadCertificates()
		p.logProblems(err)
		return err
	}
	p.apply(&fresh)
	p.reloadCertificates()
	p.log.Info().Msg("settings reloaded")
	return nil
}

// readAgain reads the settings that a reload applies.
func (p *Process) readAgain() (Settings, error) {
	if p.Reread == nil {
		return p.config, nil
	}
	fresh, err := p.Reread()
	if err == nil {
		err = p.checkReloadable(&fresh)
	}
	return fresh, err
}

// restartError names settings that cannot change at run time.
type restartError struct{ settings []string }

func (e *restartError) Error() string {
	return "settings need a restart, nothing was changed: " + strings.Join(e.settings, ", ")
}

// checkReloadable refuses a reload if only a part of the changed settings could apply before a restart. Examples: a
// password replaces principals, or a new address comes with new principals. It also refuses to remove the last
// principal, because then every client may do everything. A file that is read while it is being written may look like
// that.
func (p *Process) checkReloadable(fresh *Settings) error {
	var later []string
	for _, s := range fresh.Changed(&p.config.Config) {
		if !p.reloadable(s.Path, fresh) {
			later = append(later, s.Path)
		}
	}
	if len(p.config.Principals) > 0 && len(fresh.Principals) == 0 {
		later = append(later, "principal")
	}
	if later == nil {
		return nil
	}
	return &restartError{later}
}

// logProblems writes a line for each problem.
func (p *Process) logProblems(err error) {
	if refused := (*restartError)(nil); errors.As(err, &refused) {
		p.log.Error().Strs("settings", refused.settings).
			Msg("reload refused: settings need a restart, keeping the old settings")
		return
	}
	problems := []error{err}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		problems = all.Unwrap()
	}
	for _, problem := range problems {
		p.log.Error().Err(problem).Msg("invalid setting")
	}
	p.log.Error().Msg("reload failed, keeping the old settings")
}

// apply applies the changed settings, which checkReloadable has passed.
func (p *Process) apply(fresh *Settings) {
	for _, s := range fresh.Changed(&p.config.Config) {
		s.CopyTo(&p.config.Config)
		p.log.Info().Str("setting", s.Path).Msg("setting changed")
	}
	p.config.TakeSources(&fresh.Config)
	setLogLevel(p.config.Log.Level)
	p.applyPrincipals(fresh)
	takeTables(&p.config, fresh)
	p.revision++
	if p.term != nil {
		p.term.apply(&p.config)
	}
	if p.sessions != nil {
		p.sessions.apply(&p.config)
	}
}

// apply applies the settings that differ from the settings of the term.
func (t *term) apply(fresh *Settings) {
	old := t.config
	takeTables(&t.config, fresh)
	if !reflect.DeepEqual(old.Routes, fresh.Routes) {
		t.routes.load(&fresh.Config)
		t.routeEpoch.Add(1)
		t.log.Info().Int("routes", len(fresh.Routes)).Msg("routes changed")
	}
	t.applyLimits(&old, fresh)
	t.applyPolicies(&old, fresh)
	if !maps.Equal(old.KeepDone, fresh.KeepDone) {
		t.applyKeepDone(old.KeepDone, fresh.KeepDone)
		t.log.Info().Int("queues", len(fresh.KeepDone)).Msg("keep_done changed")
	}
	t.schedules.load(fresh.Crons)
	if !reflect.DeepEqual(old.Pushes, fresh.Pushes) {
		t.setPush()
		t.log.Info().Int("targets", len(fresh.Pushes)).Msg("push targets changed")
	}
}

func (p *Process) applyPrincipals(fresh *Settings) {
	if reflect.DeepEqual(p.config.Principals, fresh.Principals) {
		return
	}
	p.config.Principals, p.config.principals = fresh.Principals, fresh.principals
	p.access.Load(fresh.principals)
	p.log.Info().Int("principals", len(fresh.Principals)).Msg("principals changed")
}

// reloadable reports whether a setting can change now. TLS cannot be switched on or off on an open port, and a port
// cannot stop asking for client certificates.
func (p *Process) reloadable(path string, fresh *Settings) bool {
	if path == "log.level" {
		return p.Reread != nil
	}
	section, name, _ := strings.Cut(path, ".")
	if !strings.HasPrefix(name, "tls_") || name == "tls_client_ca" && certificateOf(&fresh.Config, section).TLSClientCA == "" {
		return false
	}
	return slices.ContainsFunc(p.certificates, func(c *certificates) bool {
		return c.name == section && certificateOf(&fresh.Config, section).TLSCert != ""
	})
}

// certificateOf returns the TLS settings of a protocol or of HTTP.
func certificateOf(c *config.Config, name string) config.Protocol {
	for _, f := range c.WireProtocols() {
		if f.Name == name {
			return *f.Protocol
		}
	}
	return config.Protocol{TLSCert: c.HTTP.TLSCert, TLSKey: c.HTTP.TLSKey, TLSClientCA: c.HTTP.TLSClientCA}
}

// reloadCertificates reads the certificate files again.
func (p *Process) reloadCertificates() {
	for _, c := range p.certificates {
		c.source = certificateOf(&p.config.Config, c.name)
		if err := c.reload(); err != nil {
			p.log.Error().Err(err).Msg("failed to reload certificate, keeping the old one")
		}
	}
}

// applyKeepDone sets how long queues keep finished jobs. It always sets the entry for all other queues, because that
// entry removes the jobs of queues that no longer keep any.
func (t *term) applyKeepDone(old, fresh map[string]config.KeepDone) {
	var ops []core.Op
	set := func(queue string, k config.KeepDone) {
		ops = append(ops, &core.KeepDone{Queue: queue, Retention: core.Retention{For: k.For, Count: k.Count}})
	}
	reconcile(old, fresh, cmp.Compare[string], func(queue string, k config.KeepDone, _ bool) {
		if queue != config.AllQueues {
			set(queue, k)
		}
	})
	set("", fresh[config.AllQueues])
	core.DoOnce(t.engine, core.Internal, ops...)
}

// routeFunc rewrites a queue and a type.
type routeFunc = func(queue, typ string) (string, string)

// routes are the rewriting functions of the protocols. A reload replaces them.
type routes map[string]*atomic.Pointer[routeFunc]

// of returns a function that uses the current routes at each call.
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

// load replaces the routes.
func (r routes) load(c *config.Config) {
	for protocol, current := range r {
		do := c.Rewrite(protocol)
		current.Store(&do)
	}
}
