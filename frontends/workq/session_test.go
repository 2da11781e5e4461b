package workq

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

func plain(b core.Broker) frontends.Frontend {
	return New(access.Unrestricted(b, core.Workq), Options{})
}

// setup opens a stage with the default options.
func setup(t testing.TB) *frontendtest.Stage { return frontendtest.Open(t, plain) }

// idOf is the id of the n-th job of a test.
func idOf(n int) string { return fmt.Sprintf("6ba7b810-9dad-41d1-80b4-%012x", n) }

// dialect is the dialect of the shared suite.
var dialect = frontendtest.Dialect{
	New:      plain,
	LeaseFor: 2 * time.Second,
	SubmitRequest: func(n int, queue, body string) []byte {
		return fmt.Appendf(nil, "add %s %s 2000 60000 %d\r\n%s\r\n", idOf(n), queue, len(body), body)
	},
	SubmitReply: func(c *frontendtest.Client, _ int) { c.Want("+OK\r\n") },
	Lease: func(c *frontendtest.Client, queue string) (frontendtest.Leased, bool) {
		c.Send("lease " + queue + " 0\r\n")
		line := c.ReadUntil("\r\n")
		if line == "-TIMEOUT\r\n" {
			return frontendtest.Leased{}, false
		}
		head := strings.Fields(c.ReadUntil("\r\n"))
		size, err := strconv.Atoi(head[3])
		if err != nil {
			panic(err)
		}
		body := c.Read(size + 2)
		return frontendtest.Leased{ID: head[0], Queue: head[1], Body: string(body[:size])}, true
	},
	Complete: func(c *frontendtest.Client, job frontendtest.Leased) {
		c.Send("complete " + job.ID + " 4\r\ndone\r\n")
		c.Want("+OK\r\n")
	},
	Ping:      []byte("inspect queue never-used\r\n"),
	Pong:      func(c *frontendtest.Client) { c.Want("-NOT-FOUND\r\n") },
	Commands:  slices.Concat(slices.Collect(maps.Keys(commands)), slices.Collect(maps.Keys(inspections))),
	Exchanges: exchanges,
	Garbage: [][]byte{
		nil, []byte("\n"), []byte("\r\n"), []byte(" \r\n"), []byte("add\r\n"), []byte("lease\r\n"),
		[]byte("add a b c d -1\r\n"), []byte("add a b c d 99999999999999999999\r\n"), []byte("inspect\r\n"),
		[]byte("fail x 10\r\nabc"), []byte("\x00\xff\xfe\r\n"), bytes.Repeat([]byte("-a=b "), 1000),
	},
	Oversize: []byte("add " + idOf(1) + " big 1000 60000 2000000\r\n"),
}

func TestSuite(t *testing.T) {
	t.Parallel()
	frontendtest.Run(t, dialect)
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	frontendtest.PlayAll(t, plain)
}

// A session pauses after a large answer. A client that has closed its sending side gets the answers behind it too.
func TestHalfClosedClientGetsAllLargeAnswers(t *testing.T) {
	t.Parallel()
	s := frontendtest.Open(t, plain, frontendtest.InMemory)
	const id, times = "6ba7b810-9dad-41d1-80b4-00c04fd430c4", 5
	c := s.Dial("producer")
	body := strings.Repeat("x", frontends.PauseAt)
	c.Send(fmt.Sprintf("add %s q 60000 600000 %d\r\n%s\r\n", id, len(body), body))
	c.Want("+OK\r\n")
	conn := &bareConn{}
	session := New(access.Unrestricted(s.Broker, core.Workq), Options{}).Open(conn)
	session.EOF([]byte(strings.Repeat("inspect job "+id+"\r\n", times)))
	if n := strings.Count(string(conn.out.Buf()), "+OK 1\r\n"); n != times {
		t.Errorf("%d answers, want %d", n, times)
	}
	session.Closed()
}
