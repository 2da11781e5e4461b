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

// httpAddress is the address of gearmand's HTTP protocol.
func (g *launcher) httpAddress() (config.Addresses, error) {
	switch name := g.options["protocol"]; name {
	case "":
		return nil, nil
	case httpModule:
	default:
		return nil, fmt.Errorf("Unknown protocol module : %s", name) //nolint:staticcheck // ST1005: gearmand's own words
	}
	port := cmp.Or(g.options["http-port"], defaultHTTPPort)
	addresses, err := config.ParseAddresses(net.JoinHostPort(g.options["listen"], port))
	if err != nil {
		return nil, fmt.Errorf("--http-port: %w", err)
	}
	return addresses, nil
}
