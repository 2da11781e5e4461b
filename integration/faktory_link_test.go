package integration_test

import (
	"bufio"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"broker/integration/harness"
)

// faktoryLink is a connection for pipelined requests.
type faktoryLink struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
}

func linkFaktory(t testing.TB, b *harness.Broker) *faktoryLink {
	t.Helper()
	conn, err := net.Dial("tcp", b.Faktory)
	check(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // every reply was read
	l := &faktoryLink{t: t, conn: conn, in: bufio.NewReaderSize(conn, 1<<20)}
	equal(t, "greeting", l.reply(), `HI {"v":2}`)
	l.expect("OK", "HELLO {\"v\":2}\r\n", 1)
	return l
}

// reply reads a reply: a line without its type byte, or a bulk string; "nil" for none.
func (l *faktoryLink) reply() string {
	l.t.Helper()
	check(l.t, l.conn.SetReadDeadline(time.Now().Add(harness.Patience)))
	line, err := l.in.ReadString('\n')
	check(l.t, err)
	line = strings.TrimSuffix(line, "\r\n")
	if line[0] != '$' {
		return strings.TrimPrefix(line, "+")
	}
	n, err := strconv.Atoi(line[1:])
	check(l.t, err)
	if n < 0 {
		return "nil"
	}
	body := make([]byte, n+2)
	_, err = io.ReadFull(l.in, body)
	check(l.t, err)
	return string(body[:n])
}

// expect writes requests and reads their replies, each of which must contain the words.
func (l *faktoryLink) expect(words, requests string, replies int) {
	l.t.Helper()
	_, err := l.conn.Write([]byte(requests))
	check(l.t, err)
	for range replies {
		if r := l.reply(); !strings.Contains(r, words) {
			l.t.Fatalf("reply %.200q, without %q", r, words)
		}
	}
}
