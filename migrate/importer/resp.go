package importer

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"broker/migrate/wire"
)

// respConn is a connection to Redis or Faktory. Their replies have the same format. Faktory's commands are lines.
type respConn struct {
	net.Conn
	in  *bufio.Reader
	out *bufio.Writer
}

func newRESPConn(c net.Conn) *respConn {
	return &respConn{c, bufio.NewReaderSize(c, 64<<10), bufio.NewWriterSize(c, 64<<10)}
}

// serverError is an error that the server replied.
type serverError string

func (e serverError) Error() string { return string(e) }

// line queues a command of Faktory.
func (c *respConn) line(words ...string) {
	_, _ = c.out.WriteString(strings.Join(words, " ") + "\r\n") // call returns the error
}

// array queues a command of Redis.
func (c *respConn) array(words ...string) {
	_, _ = fmt.Fprintf(c.out, "*%d\r\n", len(words)) // call returns the error
	for _, w := range words {
		_, _ = fmt.Fprintf(c.out, "$%d\r\n%s\r\n", len(w), w)
	}
}

// call flushes what was queued and reads one reply.
func (c *respConn) call() ([]byte, error) {
	if err := c.out.Flush(); err != nil {
		return nil, err
	}
	reply, err := wire.ReadRESP(c.in, wire.MaxBody)
	switch {
	case errors.Is(err, wire.ErrFraming):
		return nil, fmt.Errorf("the server's reply is %w", err)
	case err != nil:
		return nil, lost(err)
	case wire.IsRESPError(reply):
		return nil, serverError(wire.RESPText(reply))
	}
	return reply, nil
}

// text is call for replies that are strings. A null is an empty string.
func (c *respConn) text() (string, error) {
	reply, err := c.call()
	if err != nil {
		return "", err
	}
	if _, isArray := wire.RESPItems(reply); isArray {
		return "", fmt.Errorf("the reply %.100q is a list", reply)
	}
	return string(wire.RESPText(reply)), nil
}

// items is call for replies that are lists. A null is an empty list.
func (c *respConn) items() ([][]byte, error) {
	reply, err := c.call()
	if err != nil {
		return nil, err
	}
	items, isArray := wire.RESPItems(reply)
	if !isArray {
		return nil, fmt.Errorf("the reply %.100q is not a list", reply)
	}
	return items, nil
}

// texts is call for replies that are lists of strings. A null is an empty list.
func (c *respConn) texts() ([]string, error) {
	items, err := c.items()
	return textsOf(items), err
}

func textsOf(items [][]byte) []string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = string(wire.RESPText(item))
	}
	return texts
}

// number is call for replies that are numbers.
func (c *respConn) number() (int, error) {
	text, err := c.text()
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}
