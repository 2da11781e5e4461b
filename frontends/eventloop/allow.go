package eventloop

import (
	"net"
	"net/netip"
)

// allowListener accepts clients from the allowed networks only. Other connections are closed without reading or writing
// a byte. Clients on a unix socket have no address; the file's permissions restrict them.
type allowListener struct {
	net.Listener
	allow  []netip.Prefix
	denied func(net.Addr)
}

// Accept implements net.Listener.
func (f *allowListener) Accept() (net.Conn, error) {
	for {
		c, err := f.Listener.Accept()
		if err != nil || f.allows(c.RemoteAddr()) {
			return c, err
		}
		_ = c.Close() // never used
		if f.denied != nil {
			f.denied(c.RemoteAddr())
		}
	}
}

func (f *allowListener) allows(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return a.Network() == "unix"
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	for _, p := range f.allow {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}
