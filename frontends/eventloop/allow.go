package eventloop

import (
	"net"
	"net/netip"
	"slices"
)

// allowListener accepts clients from the allowed networks only. Other connections are closed without reading or writing
// a byte.
type allowListener struct {
	net.Listener
	l Listener
}

// Accept implements net.Listener.
func (a *allowListener) Accept() (net.Conn, error) {
	for {
		c, err := a.Listener.Accept()
		if err != nil || a.l.admits(c.RemoteAddr()) {
			return c, err
		}
		_ = c.Close() // never used
	}
}

// admits reports whether a client at an address may connect. It calls Denied if not. Clients on a unix socket have no
// address; the file's permissions restrict them.
func (l Listener) admits(a net.Addr) bool {
	if l.Allow == nil || allows(l.Allow, a) {
		return true
	}
	if l.Denied != nil {
		l.Denied(a)
	}
	return false
}

func allows(networks []netip.Prefix, a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return a.Network() == "unix"
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(ip) })
}
