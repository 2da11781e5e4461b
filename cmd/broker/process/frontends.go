package process

import (
	"crypto/tls"
	"fmt"
	"os"
	"slices"
	"sync/atomic"

	"github.com/rs/zerolog"

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
	leader     func(protocol string) frontends.Leader // nil: this node leads
}

// makers make the front-ends that the event loop serves, by the names of their protocols.
var makers = map[string]func(*parts, *access.Guard, frontends.Options) frontends.Frontend{
	"workq": func(p *parts, b *access.Guard, o frontends.Options) frontends.Frontend {
		return workq.New(b, workq.Options{Options: o, Handles: p.handles})
	},
	"gearman": func(p *parts, b *access.Guard, o frontends.Options) frontends.Frontend {
		c := &p.config.Gearman
		return gearman.New(b, gearman.Options{
			Options: o, Verbosity: p.Verbosity, Handles: p.handles, JobRetries: uint32(c.JobRetries),
			ExceptionsForAll: c.Exceptions, AllowShutdown: c.AllowShutdown,
			Shutdown:   func(graceful bool) { p.RequestShutdown(Shutdown{Graceful: graceful}) },
			RouteEpoch: p.routeEpoch, NoJobDelay: gearmanNoJobDelay,
		})
	},
	"faktory": func(p *parts, b *access.Guard, o frontends.Options) frontends.Frontend {
		c := &p.config.Faktory
		return faktory.New(b, faktory.Options{
			Options: o, MaxConnections: c.MaxConnections, Flush: faktory.Flush(c.Flush),
		})
	},
	"qless": func(p *parts, b *access.Guard, o frontends.Options) frontends.Frontend {
		return qless.New(b, qless.Options{Options: o, AllowFlush: p.config.Qless.AllowFlush})
	},
	"conveyor": func(_ *parts, b *access.Guard, o frontends.Options) frontends.Frontend {
		return conveyor.New(b, o)
	},
	"beanstalk": func(p *parts, b *access.Guard, o frontends.Options) frontends.Frontend {
		return beanstalk.New(b, beanstalk.Options{Options: o, Version: p.Version})
	},
}

// make makes a front-end that the event loop serves.
func (p *parts) make(protocol string) frontends.Frontend {
	b, o := p.common(protocol)
	return makers[protocol](p, b, o)
}

// sqs makes the front-end that net/http serves.
func (p *parts) sqs() *sqs.Frontend {
	c := &p.config.SQS
	b, o := p.common(sqsName)
	return sqs.New(b, sqs.Options{
		Options: o, Account: c.Account, Region: c.Region, URL: c.URL, MaxInFlight: c.MaxInFlight,
		Panicked: func(value any, stack []byte) {
			p.log.Error().Str("frontend", sqsName).Any("panic", value).Bytes("stack", stack).Msg("request panicked")
		},
	})
}

// common returns the broker behind the rights of clients, and the options that every front-end has.
func (p *parts) common(protocol string) (*access.Guard, frontends.Options) {
	all := p.config.WireProtocols()
	c := all[slices.IndexFunc(all, func(w config.WireProtocol) bool { return w.Name == protocol })]
	o := frontends.Options{
		Namespace: c.Namespace, Route: p.routes.of(protocol, p.config), Audit: p.audit,
		MaxBodyBytes: int(c.MaxBody), MaxOutputBytes: int(p.config.Limits.OutputBytes),
	}
	if c.Password != nil {
		o.Password = *c.Password
	}
	if p.leader != nil {
		o.Leader = p.leader(protocol)
	}
	number, _ := core.ParseProtocol(protocol)
	return access.NewGuard(p.broker, p.access, number, c.Principal), o
}

// buildFrontends creates every front-end, including those that are off: the HTTP API uses Faktory's.
func (t *term) buildFrontends() frontendSet {
	t.routes = make(routes)
	of := parts{
		Process: t.Process, config: &t.config.Config, broker: t.broker, audit: t.auditChange,
		handles: t.handleFormat(), routes: t.routes, routeEpoch: t.routeEpoch.Load,
	}
	set := frontendSet{byName: make(map[string]frontends.Frontend), sqs: of.sqs()}
	for protocol := range makers {
		f := of.make(protocol)
		set.byName[protocol] = f
		switch f := f.(type) {
		case *faktory.Frontend:
			set.faktory = f
		case *qless.Frontend:
			set.qless = f
		case *gearman.Frontend:
			if !t.GearmanHTTP.Off() {
				set.byName[gearmanHTTPName] = f.HTTP()
			}
		}
	}
	if t.hostile != nil {
		for name, f := range set.byName {
			set.byName[name] = t.hostile.Frontend(f)
		}
	}
	return set
}

// NewFrontend makes the front-end of a protocol on a broker that is no Process, with the default settings. Everybody
// may do everything.
func NewFrontend(protocol string, b core.Broker, version string) (frontends.Frontend, error) {
	c := config.Default()
	c.Qless.AllowFlush = true
	s := Settings{Config: c}
	of := parts{
		Process: New(&s, zerolog.Nop(), Launch{Version: version}), config: &s.Config, broker: b,
		handles: core.NewHandleFormat("H:shadow"), routes: make(routes),
	}
	f := of.make(protocol)
	if starts, ok := f.(interface{ Start() error }); ok {
		return f, starts.Start()
	}
	return f, nil
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
