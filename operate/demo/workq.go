package demo

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// workq is a connection of a Workq client.
type workq struct {
	conn net.Conn
	in   *bufio.Reader
}

func dialWorkq(ctx context.Context, address string) (*workq, error) {
	conn, err := dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return &workq{conn, bufio.NewReader(conn)}, nil
}

func (w *workq) close() { _ = w.conn.Close() } // nothing is left to say

// send sends a command and reads the first line of the reply; ok is false for an error of the protocol, such as
// TIMEOUT.
func (w *workq) send(format string, args ...any) (line string, ok bool, err error) {
	if _, err := fmt.Fprintf(w.conn, format, args...); err != nil {
		return "", false, err
	}
	line, err = w.in.ReadString('\n')
	line = strings.TrimRight(line, "\r\n")
	return line, strings.HasPrefix(line, "+"), err
}

// add submits a job.
func (w *workq) add(name, body string, priority int) error {
	line, ok, err := w.send("add %s %s 60000 86400000 %d -priority=%d -max-fails=3\r\n%s\r\n", newID(), name, len(body),
		priority, body)
	if err == nil && !ok {
		return fmt.Errorf("workq: %s", line)
	}
	return err
}

// lease takes a job; its id is empty if none arrives for a while.
func (w *workq) lease(name string) (id string, err error) {
	_, ok, err := w.send("lease %s 5000\r\n", name)
	if err != nil || !ok {
		return "", err
	}
	head, err := w.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	fields := strings.Fields(head)
	if len(fields) != 4 {
		return "", fmt.Errorf("workq: %q is not a job", head)
	}
	n, err := strconv.Atoi(fields[3])
	if err != nil {
		return "", err
	}
	_, err = io.CopyN(io.Discard, w.in, int64(n)+2)
	return fields[0], err
}

// finish completes or fails a job.
func (w *workq) finish(verb, id, result string) error {
	_, _, err := w.send("%s %s %d\r\n%s\r\n", verb, id, len(result), result)
	return err
}

// newID is a UUIDv4.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
