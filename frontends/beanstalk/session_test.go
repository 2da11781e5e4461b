package beanstalk

import (
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
	return New(access.Unrestricted(b, core.Beanstalk), Options{})
}

// dialect is the dialect of the shared suite.
var dialect = frontendtest.Dialect{
	New: func(b core.Broker) frontends.Frontend {
		suite := func(_, typ string) (string, string) { return "suite", typ }
		return New(access.Unrestricted(b, core.Beanstalk), Options{
			Options: frontends.Options{MaxBodyBytes: 1 << 20, Route: suite},
		})
	},
	LeaseFor: 2 * time.Second,
	SubmitRequest: func(_ int, _, body string) []byte {
		return fmt.Appendf(nil, "put 1024 0 2 %d\r\n%s\r\n", len(body), body)
	},
	SubmitReply: func(c *frontendtest.Client, _ int) {
		if line := c.ReadUntil("\r\n"); !strings.HasPrefix(line, "INSERTED ") {
			panic(line)
		}
	},
	Lease: func(c *frontendtest.Client, queue string) (frontendtest.Leased, bool) {
		c.Send("watch " + queue + "\r\nignore default\r\nreserve-with-timeout 0\r\n")
		c.ReadUntil("\r\n")
		c.ReadUntil("\r\n")
		head := strings.Fields(c.ReadUntil("\r\n"))
		if head[0] != "RESERVED" {
			return frontendtest.Leased{}, false
		}
		size, err := strconv.Atoi(head[2])
		if err != nil {
			panic(err)
		}
		body := c.Read(size + 2)
		return frontendtest.Leased{ID: head[1], Queue: queue, Body: string(body[:size])}, true
	},
	Complete: func(c *frontendtest.Client, job frontendtest.Leased) {
		c.Send("delete " + job.ID + "\r\n")
		c.Want("DELETED\r\n")
	},
	Ping:      []byte("stats-tube never-used\r\n"),
	Pong:      func(c *frontendtest.Client) { c.Want("NOT_FOUND\r\n") },
	Commands:  append(slices.Collect(maps.Keys(commands)), "put"),
	Exchanges: exchanges,
	Garbage: [][]byte{
		nil, []byte("\n"), []byte("\r\n"), []byte(" \r\n"), []byte("put\r\n"), []byte("reserve 1\r\n"),
		[]byte("put 0 0 0 -1\r\n"),
		[]byte("put 0 0 0 99999999999999999999\r\n"), []byte("\x00\xff\xfe\r\n"),
		[]byte(strings.Repeat("x", 1000) + "\r\n"), []byte("put 0 0 0 10\r\nabc"),
	},
	Oversize: []byte("put 0 0 1 2000000\r\n"),
	Released: true,
}

func TestSuite(t *testing.T) {
	t.Parallel()
	frontendtest.Run(t, dialect)
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	frontendtest.PlayAll(t, plain)
}
