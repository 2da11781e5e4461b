package main

import (
	"cmp"
	"fmt"
	"net"

	"broker/config"
	"broker/frontends/eventloop"
)

const (
	gearmandHTTP     = "http" // the only module that -r accepts
	gearmandHTTPPort = "8080"
)

// gearmanHTTPName is the front-end of gearmand's HTTP protocol in logs and metrics.
const gearmanHTTPName = "gearman-http"

// httpAddress is where gearmand's HTTP protocol is served; empty: nowhere.
func (g *gearmandProcess) httpAddress() (string, error) {
	switch name := g.options["protocol"]; name {
	case "":
		return "", nil
	case gearmandHTTP:
	default:
		return "", fmt.Errorf("Unknown protocol module : %s", name) //nolint:staticcheck // ST1005: gearmand's own words
	}
	address := net.JoinHostPort(g.options["listen"], cmp.Or(g.options["http-port"], gearmandHTTPPort))
	if _, err := config.ParseListen(address); err != nil {
		return "", fmt.Errorf("--http-port: %w", err)
	}
	return address, nil
}

// gearmanHTTPListeners are the listeners of gearmand's HTTP protocol. As in gearmand, they have no TLS.
func (p *process) gearmanHTTPListeners() []eventloop.Listener {
	if p.gearmanHTTP == "" {
		return nil
	}
	listeners := p.listenersOf(gearmanHTTPName, p.gearmanHTTP)
	for i := range listeners {
		p.setAllowList(&listeners[i], p.config.Gearman.Allow)
	}
	return listeners
}
