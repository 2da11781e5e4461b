package switchover

import (
	"bufio"
	"bytes"
	"testing"

	"broker/frontends/gearman/packet"
	"broker/migrate/wire"
)

// FuzzReaders reads bytes as requests and replies of each protocol. The messages read must equal the bytes sent.
func FuzzReaders(f *testing.F) {
	for _, seed := range []string{
		req(packet.SubmitJobBg, "mail", "", "x") + "status\n", res(packet.JobAssign, "H:a:1", "mail", "x"),
		"a\t1\t0\t1\n.\n",
		"PUSH {\"jid\":\"a\"}\r\n", "$2\r\nab\r\n$-1\r\n+OK\r\n", "put 0 0 60 1\r\na\r\n", "RESERVED 1 1\r\na\r\n",
		"OK -1\r\n", "$99999999999\r\n",
	} {
		f.Add([]byte(seed))
	}
	b := &beanstalkConn{}
	readers := []func(*bufio.Reader) ([]byte, error){
		func(in *bufio.Reader) ([]byte, error) { return wire.ReadPacket(in, "\x00REQ", wire.MaxMessage) },
		func(in *bufio.Reader) ([]byte, error) {
			return readGearmanReply(in, func() bool { return true })
		},
		(&faktoryConn{}).request, readRESP, b.request, b.reply,
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		for i, read := range readers {
			in := bufio.NewReaderSize(bytes.NewReader(sent), 64)
			rest := sent
			for {
				p, err := read(in)
				if err != nil {
					break
				}
				if len(p) == 0 || !bytes.HasPrefix(rest, p) {
					t.Fatalf("reader %d: %q of %q", i, p, rest)
				}
				rest = rest[len(p):]
				_, _, _ = withClientID(p), wire.RESPText(p), stateRank(p)
			}
		}
	})
}
