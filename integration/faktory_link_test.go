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
	conn, greeting := greetFaktory(t, b.Faktory, `{"v":2}`)
	equal(t, "greeting", greeting, "+HI {\"v\":2}\r\n")
	return &faktoryLink{t: t, conn: conn, in: bufio.NewReaderSize(conn, 1<<20)}
}

// greetFaktory connects and says HELLO. The broker waits two seconds for it: if the machine is so busy that this is too
// short, it tries again.
func greetFaktory(t testing.TB, address, hello string) (conn *net.TCPConn, greeting string) {
	t.Helper()
	for {
		begin := time.Now()
		c, err := net.DialTimeout("tcp", address, harness.Patience)
		check(t, err)
		t.Cleanup(func() { _ = c.Close() }) // it may be gone
		check(t, c.SetDeadline(time.Now().Add(harness.Patience)))
		in := bufio.NewReader(c)          // nothing follows the two lines
		greeting, _ = in.ReadString('\n') // an error shows in the answer
		_, _ = io.WriteString(c, "HELLO "+hello+"\r\n")
		answer, err := in.ReadString('\n')
		if answer == "+OK\r\n" {
			check(t, c.SetDeadline(time.Time{}))
			return c.(*net.TCPConn), greeting
		}
		if time.Since(begin) < harness.GreetFor {
			t.Fatalf("after %q: HELLO is answered with %q, %v", greeting, answer, err)
		}
	}
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
