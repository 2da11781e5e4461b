package eventloop

import (
	"net"
	"net/netip"
)

// filtered lets in clients of some networks only. The others are closed before anything is read from them or told to
// them. Clients on a unix socket have no address: the file's rights are what keeps them out.
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
		_ = c.Close() // it was never ours
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
