package main

import (
	"crypto/tls"
	"net"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"broker/config"
	"broker/frontends/eventloop"
)

// door counts the clients whom the allow-list of one front-end keeps out.
type door struct {
	name   string
	log    zerolog.Logger
	denied atomic.Uint64
	told   atomic.Int64 // when that was last logged, Unix seconds: a flood must not fill the log
}

// deny is called from the goroutines that accept.
func (d *door) deny(from net.Addr) {
	n := d.denied.Add(1)
	now := time.Now().Unix()
	if d.told.Swap(now) != now {
		d.log.Warn().Str("frontend", d.name).Str("remote", from.String()).Uint64("denied", n).
			Msg("client outside of the allow-list")
	}
}

// guard gives a listener its allow-list, and counts whom it keeps out.
func (p *process) guard(l *eventloop.Listener, allow []string) {
	if p.denials == nil {
		p.denials = make(map[string]*door)
	}
	d := p.denials[l.Name]
	if d == nil {
		d = &door{name: l.Name, log: p.log}
		p.denials[l.Name] = d
	}
	prefixes, err := config.ParseAllow(allow)
	if err != nil {
		panic(err) // validation has let it through
	}
	l.Allow, l.Denied = prefixes, d.deny
}

// openWeb takes the addresses of the HTTP port.
func (p *process) openWeb() error {
	h := p.config.HTTP
	var secured *certificates
	if h.TLSCert != "" {
		secured = &certificates{name: "http", from: h}
		if err := secured.reload(); err != nil {
			return err
		}
		p.certificates = append(p.certificates, secured)
	}
	for _, l := range listenersOf("http", h.Listen) {
		p.guard(&l, h.Allow)
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
			p.web = append(p.web, ln)
		}
	}
	return nil
}

// announceOne says how one front-end is reached, and warns where any host may come in.
func (p *process) announceOne(name string, s config.Protocol, password bool) {
	if s.Listen == "off" {
		p.log.Info().Str("frontend", name).Str("address", "off").Msg("not listening")
		return
	}
	addresses, err := config.ParseListen(s.Listen)
	if err != nil {
		panic(err) // validation has let it through
	}
	for _, a := range addresses {
		p.log.Info().Str("frontend", name).Stringer("address", a).Bool("password", password).Bool("tls", s.TLSCert != "").
			Bool("client_certificates", s.TLSClientCA != "").Strs("allow", s.Allow).Msg("listening")
		if !a.Loopback() && !password && s.TLSClientCA == "" && len(s.Allow) == 0 {
			p.log.Warn().Str("frontend", name).Stringer("address", a).
				Msg("open to other hosts: neither a password nor client certificates nor an allow-list")
		}
	}
}
