package process

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"broker/config"
	"broker/core"
	"broker/docs"
	"broker/frontends/eventloop"
	"broker/frontends/faktory"
	"broker/operate/console"
	"broker/operate/docsite"
	"broker/operate/hostile"
	"broker/operate/httpapi"
	"broker/operate/service"
)

// listenHTTP binds the addresses of the HTTP port.
func (p *Process) listenHTTP() error {
	h := p.config.HTTP
	var secured *certificates
	if h.TLSCert != "" {
		secured = &certificates{name: "http", source: h}
		if err := secured.reload(); err != nil {
			return err
		}
		p.certificates = append(p.certificates, secured)
	}
	for _, l := range p.listenersOf("http", h.Listen) {
		p.setAllowList(&l, h.Allow)
		lns, err := l.Open()
		if err != nil {
			return err
		}
		for _, ln := range lns {
			if secured == nil {
				ln = eventloop.PlainListener(ln, l.Name, p.log)
			} else {
				ln = tls.NewListener(ln, &tls.Config{
					MinVersion: tls.VersionTLS12,
					GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
						return secured.current.Load(), nil
					},
				})
			}
			p.httpListeners = append(p.httpListeners, ln)
		}
	}
	return nil
}

// serveHTTP starts the HTTP server before the store is opened, so that a long start can be observed. After an error,
// the sockets of clients are closed.
func (p *Process) serveHTTP() error {
	p.access.Load(p.config.principals)
	cluster := p.cluster.forHTTP()
	p.api = httpapi.New(httpapi.Options{
		Version: p.Version, Log: p.log, Access: p.access, Cluster: cluster, Password: p.config.HTTP.Password,
		Locked:           p.config.HTTPLocked(),
		DefaultPrincipal: p.config.HTTP.Principal, Profiling: p.config.HTTP.Profiling,
		MaxConns: processSocketLimits().http, MaxBodyBytes: int64(p.config.HTTP.MaxBody),
	})
	ports := make(map[string]string)
	for _, f := range p.config.WireProtocols() {
		ports[f.Name] = f.Listen.Port()
	}
	pages, err := console.New(console.Options{
		Cluster: cluster, Ports: ports, TraceURL: p.config.HTTP.TraceURL,
		Port: p.api, Version: p.Version,
		Now: func() time.Time { return p.clock().Now().Time() },
		Failed: func(page string, err error) {
			p.log.Error().Err(err).Str("page", page).Msg("page of the console failed")
		},
	})
	if err != nil {
		p.closeSockets()
		return fmt.Errorf("console: %w", err)
	}
	p.api.AddPages(pages.Routes())
	p.api.SetMissingPage(pages.Missing())
	p.api.AddPages(map[string]http.Handler{docsite.Pattern: docsite.Handler(docs.Files, func(err error) {
		p.log.Error().Err(err).Msg("documentation cannot be rendered")
	})})
	if p.Faults != nil {
		p.api.AddPages(map[string]http.Handler{hostile.Pattern: p.Faults.Log})
	}
	p.http = p.api.HTTP()
	for _, ln := range p.httpListeners {
		ln = p.disturbed(core.HTTP, ln)
		go func() { // ends when p.http is closed
			if err := p.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
				p.log.Error().Err(err).Msg("http server failed")
			}
		}()
	}
	return nil
}

// openService creates the service that the HTTP API calls.
func (t *term) openService() (err error) {
	t.service, err = service.New(service.Options{
		Broker: t.broker, Host: t, Store: t, Cluster: t.cluster.forHTTP(),
		Batches: t.frontends.faktory, Faktory: faktoryFrontend{t.frontends.faktory},
		Handles: t.handleFormat(), MaxBodyBytes: int(t.config.HTTP.MaxBody),
		DrainRefusesJobs: t.config.DrainRefusesJobs, Support: t.supportParts(),
	})
	return err
}

// Audited implements service.Host. It logs each entry of the audit log. Changes by clients of the wire protocols are
// frequent and made by programs, so they are logged at level debug only.
func (p *Process) Audited(e service.AuditEntry) {
	level := zerolog.InfoLevel
	for _, protocol := range core.Protocols {
		if protocol != core.HTTP && protocol.String() == e.Via {
			level = zerolog.DebugLevel
		}
	}
	line := p.log.WithLevel(level).Str("action", e.Action).Str("target", e.Target).Str("who", e.Who).Str("via",
		e.Via).Str("remote", e.Address).
		Int("jobs", e.Jobs)
	if e.TraceID != "" {
		line.Str("trace_id", e.TraceID)
	}
	line.Msg("changed by an operator")
}

// backend is the data source of the HTTP port.
func (t *term) backend() httpapi.Backend {
	return httpapi.Backend{Service: t.service, Broker: t.engine, Parts: t}
}

// Info implements httpapi.Parts.
func (t *term) Info() []byte { return t.frontends.faktory.Info() }

// Health implements httpapi.Parts.
func (t *term) Health() []byte { return t.frontends.faktory.Health() }

// SyncLatency implements httpapi.Parts.
func (t *term) SyncLatency() core.Latency { return t.engine.SyncLatency() }

// SettingsInForce lists the settings with the source of each.
func (p *Process) SettingsInForce() []service.Setting {
	p.reloads.Lock()
	defer p.reloads.Unlock()
	var rows []service.Setting
	for _, s := range config.Settings(&p.config.Config) {
		row := service.Setting{Name: s.Path, Value: s.String(), Source: p.config.Source(s.Path)}
		if p.config.IsSecret(s.Path) && row.Value != "" {
			row.Value = hidden
		}
		rows = append(rows, row)
	}
	return rows
}

// faktoryFrontend is the front-end for the service.
type faktoryFrontend struct{ *faktory.Frontend }

// WorkerProcesses implements service.Faktory.
func (f faktoryFrontend) WorkerProcesses() []service.FaktoryWorker {
	known := f.Workers()
	rows := make([]service.FaktoryWorker, len(known))
	for i := range known {
		w := &known[i]
		rows[i] = service.FaktoryWorker{
			WID: w.WID, State: w.State, Hostname: w.Hostname, Username: w.Username, PID: w.PID, Labels: w.Labels,
			Version: w.ProtocolVersion, RSSKB: w.RSSKB, Connections: w.Connections, RemoteAddr: w.RemoteAddr,
			StartedAt: w.StartedAt, BeatAt: w.BeatAt,
		}
	}
	return rows
}
