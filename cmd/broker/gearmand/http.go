package gearmand

import (
	"cmp"
	"fmt"
	"net"

	"broker/config"
)

const (
	httpModule      = "http" // the only module that -r accepts
	defaultHTTPPort = "8080"
)

// httpAddress is the address of gearmand's HTTP protocol; empty: off.
func (g *launcher) httpAddress() (string, error) {
	switch name := g.options["protocol"]; name {
	case "":
		return "", nil
	case httpModule:
	default:
		return "", fmt.Errorf("Unknown protocol module : %s", name) //nolint:staticcheck // ST1005: gearmand's own words
	}
	address := net.JoinHostPort(g.options["listen"], cmp.Or(g.options["http-port"], defaultHTTPPort))
	if _, err := config.ParseListen(address); err != nil {
		return "", fmt.Errorf("--http-port: %w", err)
	}
	return address, nil
}
