package eventloop

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

func TestTLSHandshakeEndsAConnectionOfAnotherServer(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Protocols: &protocols, ReadHeaderTimeout: time.Hour}
	go func() { _ = server.Serve(PlainListener(ln, "http", zerolog.Nop())) }() // ends with the server
	t.Cleanup(func() { _ = server.Close() })                                   // nothing is under way
	for input, want := range map[string]bool{
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03": false, "GET / HTTP/1.0\r\n\r\n": true,
	} {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if _, err := io.WriteString(c, input); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(c); err != nil || (len(got) > 0) != want {
			t.Errorf("%q is answered with %q, %v", input, got, err)
		}
		_ = c.Close() // it has ended
	}
}
