package main

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"net/http"

	"broker/frontends/httpapi"
	"broker/frontends/service"
)

// listenHTTP binds the addresses of the HTTP port.
func (p *process) listenHTTP() error {
	h := p.config.HTTP
	var secured *certificates
	if h.TLSCert != "" {
		secured = &certificates{name: "http", source: h}
		if err := secured.reload(); err != nil {
			return err
		}
		p.certificates = append(p.certificates, secured)
	}
	for _, l := range listenersOf("http", h.Listen) {
		p.setAllowList(&l, h.Allow)
		lns, err := l.Open()
		if err != nil {
			return err
		}
		for _, ln := range lns {
			if secured != nil {
				ln = tls.NewListener(ln, &tls.Config{
					MinVersion:         tls.VersionTLS12,
					GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return secured.current.Load(), nil },
				})
			}
			p.httpListeners = append(p.httpListeners, ln)
		}
	}
	return nil
}

// serveHTTP starts the HTTP server before the store is opened, so that a long start can be observed.
func (p *process) serveHTTP() {
	p.api = httpapi.New(httpapi.Options{
		Version: buildVersion(), Password: p.config.HTTPPassword(), Log: p.log, DrainRejectsNewJobs: p.config.DrainRejectsNewJobs,
		Profiling: p.config.HTTP.Profiling, MaxConns: processSocketLimits().http,
	})
	p.http = p.api.HTTP()
	for _, ln := range p.httpListeners {
		go func() { // ends when p.http is closed
			if err := p.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
				p.log.Error().Err(err).Msg("http server failed")
			}
		}()
	}
}

// openService creates the service that the HTTP API calls.
func (p *process) openService() (err error) {
	p.service, err = service.New(service.Options{
		Broker: p.engine, Random: func(b []byte) { _, _ = rand.Read(b) }, // never fails
		Handles: p.handleFormat(), MaxBodyBytes: maxHTTPBody, Audited: p.logAudit,
	})
	return err
}

// maxHTTPBody limits the body of a job submitted over HTTP.
const maxHTTPBody = 64 << 20

// logAudit logs each change made over HTTP.
func (p *process) logAudit(e service.AuditEntry) {
	p.log.Info().Str("action", e.Action).Str("target", e.Target).Str("who", e.Who).Str("remote", e.Address).Int("jobs", e.Jobs).
		Msg("changed over http")
}

// backend is what the HTTP API works on.
func (p *process) backend() httpapi.Backend {
	return httpapi.Backend{
		Service: p.service, Broker: p.engine, Connections: p.connections, Stats: p.frontends.faktory.Info, Health: p.frontends.faktory.Health, Backup: p.backup,
		Syncs:   p.engine.SyncLatency,
		Workers: p.workers, SetWorkerState: p.frontends.faktory.SetWorkerState, Cron: p.cronEntries,
	}
}

// workers lists the Faktory workers.
func (p *process) workers() []httpapi.Worker {
	known := p.frontends.faktory.Workers()
	rows := make([]httpapi.Worker, len(known))
	for i := range known {
		w := &known[i]
		rows[i] = httpapi.Worker{
			WID: w.WID, State: w.State.String(), Hostname: w.Hostname, Username: w.Username, PID: w.PID, Labels: w.Labels,
			Version: w.ProtocolVersion, RSSKB: w.RSSKB, Connections: w.Connections, RemoteAddr: w.RemoteAddr,
			StartedAt: w.StartedAt, BeatAt: w.BeatAt,
		}
	}
	return rows
}

// cronEntries lists the cron entries.
func (p *process) cronEntries() []httpapi.CronEntry {
	known := p.scheduler.table.Entries()
	rows := make([]httpapi.CronEntry, len(known))
	for i, e := range known {
		rows[i] = httpapi.CronEntry{Schedule: e.Spec, Type: e.Type, Queue: e.Queue, Next: e.Next, Last: e.LastRun}
	}
	return rows
}
