package eventloop

import (
	"net"
	"testing"
)

// A peer that makes crypto/tls send messages of its own, and does not read, is subject to the limit of output too.
func TestRecordsWithoutOutputCountAsPending(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }() // the test is over
	boundBuffers(t, ln)
	peer, err := dialer(nil).Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = peer.Close() }() // likewise
	nc, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }() // likewise
	r := newRecordConn(nc, &backlog{}, func() {})
	r.connect()
	const size = 4 << 20 // several times what the sockets take
	for range size >> 16 {
		if _, err := r.Write(make([]byte, 1<<16)); err != nil {
			t.Fatal(err)
		}
	}
	if n, failed := r.pending(); n < size/4 || n > size || failed {
		t.Errorf("%d bytes are pending, failed %v", n, failed)
	}
}
