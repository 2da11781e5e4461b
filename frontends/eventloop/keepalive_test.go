package eventloop

import (
	"net"
	"syscall"
	"testing"
)

// This package opens the sockets of all ports, including HTTP and TLS. It detects a dead peer after 60 s and six probes
// of 10 s.
func TestAcceptedSocketsHaveKeepalive(t *testing.T) {
	t.Parallel()
	lns, err := Listener{Name: "toy", Network: "tcp", Address: "127.0.0.1:0"}.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lns[0].Close() }() // the test is over
	peer, err := net.Dial("tcp", lns[0].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = peer.Close() }() // likewise
	c, err := lns[0].Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // likewise
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for option, want := range map[int]int{syscall.TCP_KEEPIDLE: 60, syscall.TCP_KEEPINTVL: 10, syscall.TCP_KEEPCNT: 6} {
		got := 0
		if e := raw.Control(func(fd uintptr) {
			got, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, option)
		}); e != nil || err != nil {
			t.Fatal(e, err)
		}
		if got != want {
			t.Errorf("option %d is %d, not %d", option, got, want)
		}
	}
	on := 0
	// as above
	_ = raw.Control(func(fd uintptr) {
		on, err = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_KEEPALIVE)
	})
	if err != nil || on != 1 {
		t.Errorf("keepalive is %d, %v", on, err)
	}
}
