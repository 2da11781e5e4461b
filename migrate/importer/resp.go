package importer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// maxBulk bounds a string of a reply, in bytes.
const maxBulk = 1 << 30

// respConn is a connection to Redis or Faktory, whose replies have the same form.
type respConn struct {
	net.Conn

	r *bufio.Reader
	w *bufio.Writer
}

func newRESPConn(c net.Conn) *respConn {
	return &respConn{Conn: c, r: bufio.NewReaderSize(c, 64<<10), w: bufio.NewWriterSize(c, 64<<10)}
}

// serverError is an error that the server replied.
type serverError string

func (e serverError) Error() string { return string(e) }

// line queues a command of Faktory.
func (c *respConn) line(words ...string) {
	_, _ = c.w.WriteString(strings.Join(words, " ") + "\r\n") // Flush returns the error
}

// array queues a command of Redis.
func (c *respConn) array(words ...string) {
	_, _ = fmt.Fprintf(c.w, "*%d\r\n", len(words)) // Flush returns the error
	for _, w := range words {
		_, _ = fmt.Fprintf(c.w, "$%d\r\n%s\r\n", len(w), w) // likewise
	}
}

// read reads a reply: nil, a string, an int64 or a list.
func (c *respConn) read() (any, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return nil, lost(err)
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return nil, errors.New("empty line in a reply")
	}
	rest := line[1:]
	switch line[0] {
	case '+':
		return rest, nil
	case '-':
		return nil, serverError(rest)
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	}
	size, err := strconv.Atoi(rest)
	switch {
	case err != nil || size > maxBulk || line[0] != '$' && line[0] != '*':
		return nil, fmt.Errorf("unexpected reply %.40q", line)
	case size < 0:
		return nil, nil //nolint:nilnil // the protocol's null
	case line[0] == '$':
		bulk := make([]byte, size+2)
		if _, err := io.ReadFull(c.r, bulk); err != nil {
			return nil, lost(err)
		}
		return string(bulk[:size]), nil
	}
	var list []any
	for range size {
		one, err := c.read()
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// call flushes what was queued and reads one reply.
func (c *respConn) call() (any, error) {
	if err := c.w.Flush(); err != nil {
		return nil, err
	}
	return c.read()
}

// text is call for replies that are strings. A null is an empty string.
func (c *respConn) text() (string, error) {
	v, err := c.call()
	if err != nil || v == nil {
		return "", err
	}
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("unexpected reply %v", v)
	}
	return s, nil
}

// texts is call for replies that are lists of strings.
func (c *respConn) texts() ([]string, error) {
	v, err := c.call()
	if err != nil {
		return nil, err
	}
	return asTexts(v)
}

// asTexts is a reply that is a list of strings. A null is an empty list.
func asTexts(v any) ([]string, error) {
	if v == nil {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("unexpected reply %v", v)
	}
	texts := make([]string, len(list))
	for i, one := range list {
		if texts[i], ok = one.(string); !ok {
			return nil, fmt.Errorf("unexpected reply %v", one)
		}
	}
	return texts, nil
}

// number is call for replies that are numbers.
func (c *respConn) number() (int, error) {
	v, err := c.call()
	n, ok := v.(int64)
	if err == nil && !ok {
		err = fmt.Errorf("unexpected reply %v", v)
	}
	return int(n), err
}
