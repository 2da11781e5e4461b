package importer

import (
	"errors"
	"net"
	"net/url"
	"testing"

	"broker/migrate/wire"
)

func TestServersOfOtherProtocolsAreNamedAsSuch(t *testing.T) {
	t.Parallel()
	connected := func(says string) *respConn {
		client, server := net.Pipe()
		t.Cleanup(func() { _, _ = client.Close(), server.Close() })
		go func() { _, _ = server.Write([]byte(says)) }() // ends with the connection
		return newRESPConn(client)
	}
	for _, says := range []string{"SSH-2.0-x\r\n", "+PONG\r\n", "HI {}\n"} {
		if err := greet(connected(says), &url.URL{}, ""); !errors.Is(err, wire.ErrNotFaktory) {
			t.Errorf("%q is greeted with error %v", says, err)
		}
	}
	_, err := connected("SSH-2.0-x\r\n").text()
	if want := "the server's reply is not of the protocol"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
