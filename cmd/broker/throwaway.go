package main

import (
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"broker/config"
)

// addressFlags adds the flags with those names, which set addresses, to a command whose broker leaves nothing behind.
func addressFlags(cmd *cobra.Command, names []string) {
	for _, f := range flagSettings {
		if slices.Contains(names, f.flag) {
			about, _, _ := strings.Cut(f.about, ":") // one address, on a port
			cmd.Flags().Var(&textFlag{kind: "HOST:PORT"}, f.flag, about+" (default: as serve, or another port if that one is in use)")
		}
	}
}

// throwAwaySettings are the settings of such a command: fixed ones, the flags, and free ports. It reads no file and no environment.
func throwAwaySettings(cmd *cobra.Command, fixed map[string]string) (config.Config, error) {
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
	listens := map[string]*string{"http": &c.HTTP.Listen}
	for _, p := range c.WireProtocols() {
		listens[p.Name] = &p.Listen
	}
	for name, listen := range listens {
		if given := cmd.Flags().Lookup(name); given != nil && (!given.Changed || strings.HasSuffix(*listen, ":0")) {
			*listen = freePort(*listen)
		}
	}
	return c, nil
}

// freePort is the address, or one with another port if it is in use.
func freePort(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	for _, try := range []string{address, net.JoinHostPort(host, "0")} {
		if ln, err := net.Listen("tcp", try); err == nil {
			defer func() { _ = ln.Close() }() // the broker will listen on it
			return ln.Addr().String()
		}
	}
	return address
}
