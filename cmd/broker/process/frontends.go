package process

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync/atomic"

	"broker/access"
	"broker/config"
	"broker/core"
	"broker/frontends"
	"broker/frontends/beanstalk"
	"broker/frontends/conveyor"
	"broker/frontends/eventloop"
	"broker/frontends/faktory"
	"broker/frontends/gearman"
	"broker/frontends/qless"
	"broker/frontends/shared/resp"
	"broker/frontends/sqs"
	"broker/frontends/workq"
)

// gearmanHTTPName is the front-end of gearmand's HTTP protocol in logs and metrics.
const gearmanHTTPName = "gearman-http"

// frontendSet holds the front-ends.
type frontendSet struct {
	byName  map[string]frontends.Frontend
	faktory *faktory.Frontend
	qless   *qless.Frontend
	sqs     *sqs.Frontend
}

// parts are what front-ends are made of.
type parts struct {
	*Process
	config     *config.Config
	broker     core.Broker
	audit      access.Audit
	handles    core.HandleFormat
	routes     routes
	routeEpoch func() uint64
}

// guard is the broker behind the rights of clients.
func (p *parts) guard(protocol core.Protocol, fallback string) *access.Guard {
	return access.NewGuard(p.broker, p.access, protocol, fallback)
}

func (p *parts) gearman() *gearman.Frontend {
	c := p.config
	return gearman.New(p.guard(core.Gearman, c.Gearman.Principal), gearman.Options{
		Audit:     p.audit,
		Verbosity: p.Verbosity,
		Handles:   p.handles, JobRetries: uint32(c.Gearman.JobRetries),
		ExceptionsForAll: c.Gearman.Exceptions, AllowShutdown: c.Gearman.AllowShutdown,
		Shutdown:     func(graceful bool) { p.RequestShutdown(Shutdown{Graceful: graceful}) },
		MaxBodyBytes: int(c.Gearman.MaxBody), MaxOutputBytes: int(c.Limits.OutputBytes),
		Namespace: c.Gearman.Namespace, Route: p.routes.of("gearman", c), RouteEpoch: p.routeEpoch,
		NoJobDelay: gearmanNoJobDelay,
	})
}

func (p *parts) workq() frontends.Frontend {
	c := p.config
	return workq.New(p.guard(core.Workq, c.Workq.Principal), workq.Options{
		MaxBodyBytes: int(c.Workq.MaxBody), MaxOutputBytes: int(c.Limits.OutputBytes),
		Namespace: c.Workq.Namespace, Route: p.routes.of("workq", c),
		Handles: p.handles, Audit: p.audit,
	})
}

func (p *parts) beanstalk() frontends.Frontend {
	c := p.config
	return beanstalk.New(p.guard(core.Beanstalk, c.Beanstalk.Principal), beanstalk.Options{
		MaxBodyBytes: int(c.Beanstalk.MaxBody), MaxOutputBytes: int(c.Limits.OutputBytes),
		Namespace: c.Beanstalk.Namespace, Route: p.routes.of("beanstalk", c), Audit: p.audit,
		Version: p.Version,
	})
}

// faktory makes the front-end of the leader, or with a leader that of a node that follows.
func (p *parts) faktory(leader frontends.Leader) *faktory.Frontend {
	c := p.config
	return faktory.New(p.guard(core.Faktory, c.Faktory.Principal), faktory.Options{
		Audit:    p.audit,
		Password: c.Faktory.Password, MaxLine: int(c.Faktory.MaxBody), MaxConnections: c.Faktory.MaxConnections,
		Namespace: c.Faktory.Namespace, Flush: faktory.Flush(c.Faktory.Flush), Route: p.routes.of("faktory", c),
		Leader: leader,
	})
}

// sqs is like faktory.
func (p *parts) sqs(leader frontends.Leader) *sqs.Frontend {
	c := p.config
	return sqs.New(p.guard(core.SQS, c.SQS.Principal), sqs.Options{
		Audit: p.audit,
		Panicked: func(value any, stack []byte) {
			p.log.Error().Str("frontend", sqsName).Any("panic", value).Bytes("stack", stack).Msg("request panicked")
		},
		Account: c.SQS.Account, Region: c.SQS.Region, URL: c.SQS.URL, MaxInFlight: c.SQS.MaxInFlight,
		MaxBodyBytes: int(c.SQS.MaxBody),
		Namespace:    c.SQS.Namespace, Route: p.routes.of("sqs", c), Leader: leader,
	})
}

// buildFrontends creates every front-end, including those that are off: the HTTP API uses Faktory's.
func (t *term) buildFrontends() frontendSet {
	c := &t.config.Config
	t.routes = make(routes)
	of := parts{
		Process: t.Process, config: c, broker: t.broker, audit: t.auditChange, handles: t.handleFormat(),
		routes: t.routes, routeEpoch: t.routeEpoch.Load,
	}
	guard := of.guard
	f := of.faktory(nil)
	q := qless.New(guard(core.Qless, c.Qless.Principal), qless.Options{
		AllowFlush: c.Qless.AllowFlush,
		Options: resp.Options{
			Audit:    t.auditChange,
			Password: c.Qless.Password, MaxBodyBytes: int(c.Qless.MaxBody), MaxOutputBytes: int(c.Limits.OutputBytes),
			Namespace: c.Qless.Namespace, Route: t.routes.of("qless", c),
		},
	})
	g := of.gearman()
	set := frontendSet{faktory: f, qless: q, byName: map[string]frontends.Frontend{
		"workq":     of.workq(),
		"gearman":   g,
		"faktory":   f,
		"qless":     q,
		"beanstalk": of.beanstalk(),
		"conveyor": conveyor.New(guard(core.Conveyor, c.Conveyor.Principal), conveyor.Options{
			Audit:    t.auditChange,
			Password: c.Conveyor.Password, MaxBodyBytes: int(c.Conveyor.MaxBody),
			MaxOutputBytes: int(c.Limits.OutputBytes),
			Namespace:      c.Conveyor.Namespace, Route: t.routes.of("conveyor", c),
		}),
	}}
	set.sqs = of.sqs(nil)
	if !t.GearmanHTTP.Off() {
		set.byName[gearmanHTTPName] = g.HTTP()
	}
	if t.hostile != nil {
		for name, f := range set.byName {
			set.byName[name] = t.hostile.Frontend(f)
		}
	}
	return set
}

// handleFormat is the format of job handles, which Workq and HTTP clients may use too.
func (t *term) handleFormat() core.HandleFormat { return core.NewHandleFormat(t.handlePrefix()) }

func (t *term) handlePrefix() string {
	if prefix := t.config.Gearman.HandlePrefix; prefix != "" {
		return prefix
	}
	host, _ := os.Hostname() // without a host name handles are H::N
	return "H:" + host
}

// certificates are the TLS settings of one front-end. A reload replaces them.
type certificates struct {
	name               string
	source             interface{ TLS() (*tls.Config, error) }
	clientCertOptional bool // clients without a certificate are accepted too
	current            atomic.Pointer[tls.Config]
}

// reload reads the files; if that fails, the current configuration stays.
func (c *certificates) reload() error {
	read, err := c.source.TLS()
	if err != nil {
		return fmt.Errorf("load certificate of %s: %w", c.name, err)
	}
	if c.clientCertOptional && read.ClientCAs != nil {
		read.ClientAuth = tls.VerifyClientCertIfGiven
	}
	if c.name == "http" {
		read.NextProtos = []string{"h2", "http/1.1"}
	}
	c.current.Store(read)
	return nil
}

// listenersAndCertificates are the addresses of the front-ends, and their certificates.
func (p *Process) listenersAndCertificates() ([]eventloop.Listener, []*certificates, error) {
	var all []eventloop.Listener
	var certs []*certificates
	for _, f := range p.config.WireProtocols() {
		var provide func() *tls.Config
		if f.TLSCert != "" {
			cert := &certificates{name: f.Name, source: *f.Protocol, clientCertOptional: p.ClientCertOptional}
			if err := cert.reload(); err != nil {
				return nil, nil, err
			}
			certs = append(certs, cert)
			provide = cert.current.Load
		}
		for _, l := range p.listenersOf(f.Name, f.Listen) {
			l.TLS = provide
			p.setAllowList(&l, f.Allow)
			all = append(all, l)
		}
	}
	return append(all, p.gearmanHTTPListeners()...), certs, nil
}

// listenersOf makes the listeners of a port.
func (p *Process) listenersOf(name string, addresses config.Addresses) []eventloop.Listener {
	all := make([]eventloop.Listener, len(addresses))
	for i, a := range addresses {
		all[i] = eventloop.Listener{Name: name, Network: a.Network, Address: a.Address}
		if sockets := p.Sockets[name]; len(sockets) > 0 {
			all[i].Socket = sockets[i] // the setting was made from them
		}
	}
	return all
}

// gearmanHTTPListeners are the listeners of gearmand's HTTP protocol. As in gearmand, they have no TLS.
func (p *Process) gearmanHTTPListeners() []eventloop.Listener {
	listeners := p.listenersOf(gearmanHTTPName, p.GearmanHTTP)
	for i := range listeners {
		p.setAllowList(&listeners[i], p.config.Gearman.Allow)
	}
	return listeners
}
