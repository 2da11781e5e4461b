package importer

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"broker/migrate/wire"
)

// beanstalkConn is a connection to a beanstalkd.
type beanstalkConn struct {
	net.Conn

	r *bufio.Reader
	w *bufio.Writer
}

func newBeanstalkConn(c net.Conn) *beanstalkConn {
	return &beanstalkConn{Conn: c, r: bufio.NewReaderSize(c, 64<<10), w: bufio.NewWriterSize(c, 64<<10)}
}

// send queues a command.
func (b *beanstalkConn) send(format string, args ...any) {
	_, _ = fmt.Fprintf(b.w, format+"\r\n", args...) // Flush returns the error
}

// reply reads the words of a reply, and the data if the word is OK, FOUND or RESERVED.
func (b *beanstalkConn) reply() (words []string, data []byte, err error) {
	if err := b.w.Flush(); err != nil {
		return nil, nil, err
	}
	words, data, err = wire.ReadBeanstalk(b.r, wire.MaxBody)
	if errors.Is(err, wire.ErrFraming) {
		return nil, nil, errors.New("the source does not speak beanstalkd's protocol")
	}
	return words, data, lost(err)
}

// call sends a command and expects one of the given replies.
func (b *beanstalkConn) call(command string, expect ...string) (words []string, data []byte, err error) {
	b.send("%s", command)
	words, data, err = b.reply()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", command, err)
	}
	if !slices.Contains(expect, words[0]) {
		return nil, nil, fmt.Errorf("%s: the source replied %s", command, strings.Join(words, " "))
	}
	return words, data, nil
}

// stats calls a command whose reply is a list of names and values.
func (b *beanstalkConn) stats(command string) (map[string]string, error) {
	_, data, err := b.call(command, "OK")
	return statsOf(data), err
}

func statsOf(data []byte) map[string]string {
	values := make(map[string]string)
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			values[name] = strings.Trim(value, `"`)
		}
	}
	return values
}

func (b *beanstalkConn) tubes() ([]string, error) {
	_, data, err := b.call("list-tubes", "OK")
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
			names = append(names, strings.Trim(name, `"`))
		}
	}
	return names, nil
}
