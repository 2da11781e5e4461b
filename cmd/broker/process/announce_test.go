package process

import (
	"net"
	"testing"
)

// boundTo is a listener that is bound to an address.
type boundTo struct {
	net.Listener
	at net.Addr
}

func (b boundTo) Addr() net.Addr { return b.at }

func TestConsoleHasAnAddressForABrowserHere(t *testing.T) {
	t.Parallel()
	unix := boundTo{at: &net.UnixAddr{Name: "/run/broker.sock", Net: "unix"}}
	tcp := func(ip string) net.Listener { return boundTo{at: &net.TCPAddr{IP: net.ParseIP(ip), Port: 7420}} }
	for _, test := range []struct {
		listeners  []net.Listener
		cert, want string
	}{
		{[]net.Listener{tcp("127.0.0.1")}, "", "http://127.0.0.1:7420/"},
		{[]net.Listener{unix, tcp("::1")}, "", "http://[::1]:7420/"},
		{[]net.Listener{tcp("0.0.0.0")}, "cert.pem", "https://localhost:7420/"},
		{[]net.Listener{tcp("::")}, "", "http://localhost:7420/"},
		{[]net.Listener{unix}, "", ""},
		{nil, "", ""},
	} {
		p := &Process{}
		p.httpListeners, p.config.HTTP.TLSCert = test.listeners, test.cert
		if got := p.consoleURL(); got != test.want {
			t.Errorf("%v: %q, want %q", test, got, test.want)
		}
	}
}
