package eventloop

import (
	"net"
	"net/netip"
	"testing"
)

func TestAllowListKnowsNetworks(t *testing.T) {
	t.Parallel()
	l := Listener{Allow: []netip.Prefix{
		netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("fe80::/10"),
	}}
	for text, want := range map[string]bool{
		"10.1.2.3": true, "10.2.0.1": false, "127.0.0.1": true, "127.0.0.2": false, "::ffff:10.1.0.9": true,
		"::1": false, "fe80::1": true,
	} {
		if got := l.admits(&net.TCPAddr{IP: net.ParseIP(text), Port: 1, Zone: ""}); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if !l.admits(&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}) {
		t.Error("a zone changes the result")
	}
	if !l.admits(&net.UnixAddr{Net: "unix"}) {
		t.Error("a unix socket is refused")
	}
}

func TestClientsOutsideTheAllowListNeverReachASession(t *testing.T) {
	t.Parallel()
	denied := make(chan net.Addr, 1)
	f := setup(t, func(_ *fixture, _ *Options, l *Listener) {
		l.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}
		l.Denied = func(a net.Addr) { denied <- a }
	})
	c, err := net.Dial("tcp", f.Addrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 10)); err == nil || n > 0 {
		t.Errorf("received %d bytes", n)
	}
	_ = c.Close()
	<-denied
	if got := f.Counts()["toy"]; got.Accepted != 0 {
		t.Errorf("accepted: %+v", got)
	}
	d := dialer(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)})
	c, err = d.Dial("tcp", f.Addrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	client := newClient(t, c)
	client.send("echo hello\n")
	client.want("hello")
}
