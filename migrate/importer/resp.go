package importer

import (
	"bufio"
	"errors"
	"net"
	"strings"

	redigo "github.com/gomodule/redigo/redis"
)

// respConn is a connection to Redis or Faktory. Their replies have the same format. Faktory's commands are lines.
type respConn struct {
	replies redigo.Conn
	lines   *bufio.Writer
}

func newRESPConn(c net.Conn) *respConn {
	return &respConn{redigo.NewConn(c, 0, 0), bufio.NewWriterSize(c, 64<<10)}
}

// Close closes the connection.
func (c *respConn) Close() error { return c.replies.Close() }

// serverError is an error that the server replied.
type serverError string

func (e serverError) Error() string { return string(e) }

// line queues a command of Faktory.
func (c *respConn) line(words ...string) {
	_, _ = c.lines.WriteString(strings.Join(words, " ") + "\r\n") // Flush returns the error
}

// array queues a command of Redis.
func (c *respConn) array(command string, words ...string) {
	_ = c.replies.Send(command, redigo.Args{}.AddFlat(words)...) // Flush returns the error
}

// call flushes what was queued and reads one reply.
func (c *respConn) call() (any, error) {
	if err := errors.Join(c.lines.Flush(), c.replies.Flush()); err != nil {
		return nil, err
	}
	reply, err := c.replies.Receive()
	if refusal := redigo.Error(""); errors.As(err, &refusal) {
		return nil, serverError(refusal)
	}
	if err != nil {
		return nil, lost(err)
	}
	return reply, nil
}

// text is call for replies that are strings. A null is an empty string.
func (c *respConn) text() (string, error) {
	text, err := redigo.String(c.call())
	if errors.Is(err, redigo.ErrNil) {
		return "", nil
	}
	return text, err
}

// texts is call for replies that are lists of strings. A null is an empty list.
func (c *respConn) texts() ([]string, error) {
	texts, err := redigo.Strings(c.call())
	if errors.Is(err, redigo.ErrNil) {
		return nil, nil
	}
	return texts, err
}

// number is call for replies that are numbers.
func (c *respConn) number() (int, error) { return redigo.Int(c.call()) }
