package eventloop

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// net/http reads again after the end of the input, so each read must fail.
func TestTLSHandshakeEndsAConnectionOfAnotherServer(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	plain := PlainListener(ln, "http", zerolog.Nop())
	t.Cleanup(func() { _ = plain.Close() }) // nothing is under way
	for input, refused := range map[string]bool{
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03": true, "GET / HTTP/1.0\r\n\r\n": false,
	} {
		client, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c, err := plain.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(client, input); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_ = c.SetReadDeadline(time.Now().Add(time.Minute))
			n, err := c.Read(make([]byte, 100))
			if refused != (err != nil) || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%q: read %d bytes, %v", input, n, err)
			}
			if !refused {
				break
			}
		}
		_, _ = client.Close(), c.Close() // one of them may be closed
	}
}
