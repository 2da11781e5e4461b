package main

import (
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"broker/cmd/broker/process"
	"broker/config"
)

// addressFlags adds address flags to a command that runs a temporary broker.
func addressFlags(cmd *cobra.Command, names []string) {
	for _, f := range flagSettings {
		if slices.Contains(names, f.flag) {
			about, _, _ := strings.Cut(f.about, ":") // one address, on a port
			cmd.Flags().Var(&textFlag{kind: "HOST:PORT"}, f.flag,
				about+" (default: as for serve, or another port if that port is in use)")
		}
	}
}

// throwAwaySettings are the settings of such a command: fixed settings, flags, and free ports. It reads no file and no
// environment.
func throwAwaySettings(cmd *cobra.Command, fixed map[string]string) (process.Settings, error) {
	sources := config.Sources{Flags: fixed}
	for _, f := range flagSettings {
		if given := cmd.Flags().Lookup(f.flag); given != nil && given.Changed {
			f.set(sources.Flags, given.Value.String())
		}
	}
	c, err := loadSettings(sources)
	if err != nil {
		return c, err
	}
	listens := map[string]config.Addresses{"http": c.HTTP.Listen}
	for _, p := range c.WireProtocols() {
		listens[p.Name] = p.Listen
	}
	for name, listen := range listens {
		given := cmd.Flags().Lookup(name)
		for i, a := range listen {
			if given != nil && a.Network == "tcp" && (!given.Changed || strings.HasSuffix(a.Address, ":0")) {
				listen[i].Address = freePort(a.Address)
			}
		}
	}
	return c, nil
}

// freePort returns the address, or the same address with a free port if it is in use.
func freePort(address string) string {
	host, _, _ := net.SplitHostPort(address) // the settings are validated
	for _, try := range []string{address, net.JoinHostPort(host, "0")} {
		if ln, err := net.Listen("tcp", try); err == nil {
			defer func() { _ = ln.Close() }() // the broker will listen on it
			return ln.Addr().String()
		}
	}
	return address
}
