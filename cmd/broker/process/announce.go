package process

import (
	"net"
	"os"
	"strconv"

	"broker/config"
)

// announce logs where clients are served and how access is restricted.
func (p *Process) announce() {
	c := &p.config.Config
	for _, f := range c.WireProtocols() {
		p.announceFrontend(f.Name, *f.Protocol, f.HasPassword())
	}
	if !p.GearmanHTTP.Off() {
		p.announceFrontend(gearmanHTTPName, config.Protocol{Listen: p.GearmanHTTP, Allow: c.Gearman.Allow}, false)
	}
	p.announceFrontend("http", config.Protocol{
		Listen: c.HTTP.Listen, Allow: c.HTTP.Allow, TLSCert: c.HTTP.TLSCert, TLSClientCA: c.HTTP.TLSClientCA,
	}, c.HTTP.Password != "")
	if c.HTTPLocked() && !c.HTTP.Listen.Off() {
		p.log.Warn().Msg(
			"http is closed except for health checks and the documentation, as faktory.password is set: set http.password, http.tls_client_ca or principals",
		)
	}
	if info, err := os.Stat(c.Data); err == nil && c.Durability != "none" && info.Mode().Perm()&0o077 != 0 {
		p.log.Warn().Str("data", c.Data).Stringer("mode",
			info.Mode().Perm()).Msg("data directory is readable by other users")
	}
	line := p.log.Info().Str("version", p.Version).Str("data", c.Data).Str("durability", c.Durability)
	if url := p.consoleURL(); url != "" {
		line.Str("console", url)
	}
	line.Msg("ready")
}

// consoleURL is the address of the console for a browser on this machine; empty: it is on no TCP port.
func (p *Process) consoleURL() string {
	scheme := "http"
	if p.config.HTTP.TLSCert != "" {
		scheme = "https"
	}
	for _, ln := range p.httpListeners {
		at, ok := ln.Addr().(*net.TCPAddr)
		if !ok {
			continue // a unix socket
		}
		host := at.IP.String()
		if at.IP.IsUnspecified() {
			host = "localhost"
		}
		return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(at.Port)) + "/"
	}
	return ""
}

// announceFrontend logs the addresses of one front-end, and warns if any host can connect.
func (p *Process) announceFrontend(name string, s config.Protocol, password bool) {
	if s.Listen.Off() {
		p.log.Info().Str("frontend", name).Str("address", "off").Msg("not listening")
		return
	}
	for _, a := range s.Listen {
		p.log.Info().Str("frontend", name).Stringer("address", a).Bool("password", password).Bool("tls",
			s.TLSCert != "").
			Bool("client_certificates", s.TLSClientCA != "").Strs("allow", s.Allow.Texts()).Msg("listening")
		if !a.Loopback() && !password && s.TLSClientCA == "" && len(s.Allow) == 0 {
			p.log.Warn().Str("frontend", name).Stringer("address", a).
				Msg("reachable from other hosts without password, client certificates or allow list")
		}
	}
}
