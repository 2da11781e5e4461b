// Package workqclient is a strict Workq client: a reply that differs from the protocol in a single byte is an error.
package workqclient

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// replyWait is how long a reply may take, in addition to the time that the command lets the server wait.
const replyWait = 2 * time.Minute

// Error replies without a message.
var (
	ErrNotFound = errors.New("-NOT-FOUND")
	ErrTimeout  = errors.New("-TIMEOUT")
)

// ClientError is the message of a -CLIENT-ERROR.
type ClientError struct{ Text string }

func (e *ClientError) Error() string { return "-CLIENT-ERROR " + e.Text }

// ServerError is the message of a -SERVER-ERROR.
type ServerError struct{ Text string }

func (e *ServerError) Error() string { return "-SERVER-ERROR " + e.Text }

// ProtocolError reports that the server violated the protocol.
type ProtocolError struct{ Reason string }

func (e *ProtocolError) Error() string { return "workq protocol broken: " + e.Reason }

// Client is a connection for one goroutine.
type Client struct {
	conn net.Conn
	in   *bufio.Reader
}

// Dial connects.
func Dial(addr string) (*Client, error) {
	conn, err := net.DialTimeout("tcp", addr, replyWait)
	if err != nil {
		return nil, err
	}
	return &Client{conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}, nil
}

// Close closes the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Job is the argument of add, schedule and run.
type Job struct {
	ID       string
	Name     string
	TTR, TTL time.Duration
	Body     []byte
	Flags    []string  // "-priority=5"
	At       time.Time // schedule only
	Wait     time.Duration
}

// Lease is a leased job.
type Lease struct {
	ID, Name string
	TTR      time.Duration
	Body     []byte
}

// Result is the outcome of a job.
type Result struct {
	OK   bool
	Body []byte
}

// Add submits a job.
func (c *Client) Add(j Job) error {
	return c.expectOK("add %s %s %d %d %d%s", j.Body, j.ID, j.Name, j.TTR.Milliseconds(), j.TTL.Milliseconds(),
		len(j.Body), j.flags())
}

// Schedule submits a job for later.
func (c *Client) Schedule(j Job) error {
	at := j.At.UTC().Format("2006-01-02T15:04:05Z")
	return c.expectOK("schedule %s %s %d %d %s %d%s", j.Body,
		j.ID, j.Name, j.TTR.Milliseconds(), j.TTL.Milliseconds(), at, len(j.Body), j.flags())
}

// Run submits a job and waits for its result.
func (c *Client) Run(j Job) (Result, error) {
	if err := c.send(fmt.Sprintf("run %s %s %d %d %d%s", j.ID, j.Name, j.TTR.Milliseconds(), j.Wait.Milliseconds(),
		len(j.Body), j.flags()), j.Body, true); err != nil {
		return Result{}, err
	}
	return c.readResult(j.ID, j.Wait+j.TTR)
}

// Result waits for the outcome of a job.
func (c *Client) Result(id string, wait time.Duration) (Result, error) {
	if err := c.send(fmt.Sprintf("result %s %d", id, wait.Milliseconds()), nil, false); err != nil {
		return Result{}, err
	}
	return c.readResult(id, wait)
}

// Lease leases a job from one of the names; it waits for one.
func (c *Client) Lease(wait time.Duration, names ...string) (Lease, error) {
	if err := c.send(fmt.Sprintf("lease %s %d", strings.Join(names, " "), wait.Milliseconds()), nil,
		false); err != nil {
		return Lease{}, err
	}
	if err := c.readOKCount(1, wait); err != nil {
		return Lease{}, err
	}
	fields, err := c.readFields(4)
	if err != nil {
		return Lease{}, err
	}
	l := Lease{ID: fields[0], Name: fields[1]}
	if err := checkID(l.ID); err != nil {
		return Lease{}, err
	}
	ttr, err := canonicalInt(fields[2])
	if err != nil {
		return Lease{}, err
	}
	l.TTR = time.Duration(ttr) * time.Millisecond
	l.Body, err = c.readBody(fields[3])
	return l, err
}

// Complete completes a job with a result.
func (c *Client) Complete(id string, result []byte) error {
	return c.expectOK("complete %s %d", result, id, len(result))
}

// Fail fails a job.
func (c *Client) Fail(id string, result []byte) error {
	return c.expectOK("fail %s %d", result, id, len(result))
}

// Delete removes a job.
func (c *Client) Delete(id string) error {
	if err := c.send("delete "+id, nil, false); err != nil {
		return err
	}
	return c.readOK(0)
}

// Send writes raw bytes.
func (c *Client) Send(b []byte) error {
	if err := c.conn.SetWriteDeadline(time.Now().Add(replyWait)); err != nil {
		return err
	}
	_, err := c.conn.Write(b)
	return err
}

// Line reads any reply line, without its CRLF.
func (c *Client) Line(wait time.Duration) (string, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(wait + replyWait)); err != nil {
		return "", err
	}
	line, err := c.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	text, found := strings.CutSuffix(line, "\r\n")
	if !found || strings.ContainsAny(text, "\r") {
		return "", &ProtocolError{fmt.Sprintf("line %q does not end in one CRLF", line)}
	}
	return text, nil
}

// Silent reports an error if the server sends anything during that time.
func (c *Client) Silent(d time.Duration) error {
	if err := c.conn.SetReadDeadline(time.Now().Add(d)); err != nil {
		return err
	}
	b, err := c.in.Peek(1)
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return nil
	}
	if err != nil {
		return err
	}
	rest, _ := c.in.Peek(c.in.Buffered()) // cannot fail: the bytes are buffered
	return &ProtocolError{fmt.Sprintf("unasked bytes %q", append(b[:0:0], rest...))}
}

func (j Job) flags() string {
	if len(j.Flags) == 0 {
		return ""
	}
	return " " + strings.Join(j.Flags, " ")
}

func (c *Client) expectOK(format string, body []byte, args ...any) error {
	if err := c.send(fmt.Sprintf(format, args...), body, true); err != nil {
		return err
	}
	return c.readOK(0)
}

// send writes a command with one write. An empty body has its CRLF too.
func (c *Client) send(line string, body []byte, hasBody bool) error {
	var b bytes.Buffer
	b.WriteString(line)
	b.WriteString("\r\n")
	if hasBody {
		b.Write(body)
		b.WriteString("\r\n")
	}
	return c.Send(b.Bytes())
}

func (c *Client) readOK(wait time.Duration) error {
	line, err := c.Line(wait)
	if err != nil {
		return err
	}
	if line != "+OK" {
		return refusal(line)
	}
	return nil
}

func (c *Client) readOKCount(want int, wait time.Duration) error {
	n, err := c.readCount(wait)
	if err != nil {
		return err
	}
	if n != want {
		return &ProtocolError{fmt.Sprintf("+OK %d where %d was due", n, want)}
	}
	return nil
}

func (c *Client) readCount(wait time.Duration) (int, error) {
	line, err := c.Line(wait)
	if err != nil {
		return 0, err
	}
	count, found := strings.CutPrefix(line, "+OK ")
	if !found {
		return 0, refusal(line)
	}
	return canonicalInt(count)
}

func (c *Client) readResult(id string, wait time.Duration) (Result, error) {
	if err := c.readOKCount(1, wait); err != nil {
		return Result{}, err
	}
	fields, err := c.readFields(3)
	if err != nil {
		return Result{}, err
	}
	if fields[0] != id {
		return Result{}, &ProtocolError{fmt.Sprintf("result of %s where %s was asked for", fields[0], id)}
	}
	if fields[1] != "0" && fields[1] != "1" {
		return Result{}, &ProtocolError{fmt.Sprintf("success is %q", fields[1])}
	}
	body, err := c.readBody(fields[2])
	return Result{OK: fields[1] == "1", Body: body}, err
}

// readFields reads a line of exactly n words, separated by single spaces.
func (c *Client) readFields(n int) ([]string, error) {
	line, err := c.Line(0)
	if err != nil {
		return nil, err
	}
	fields := strings.Split(line, " ")
	if len(fields) != n {
		return nil, &ProtocolError{fmt.Sprintf("line %q has %d words, not %d", line, len(fields), n)}
	}
	return fields, nil
}

func (c *Client) readBody(size string) ([]byte, error) {
	n, err := canonicalInt(size)
	if err != nil {
		return nil, err
	}
	buf := make([]byte, n+2)
	if _, err := io.ReadFull(c.in, buf); err != nil {
		return nil, fmt.Errorf("read a body of %d bytes: %w", n, err)
	}
	if string(buf[n:]) != "\r\n" {
		return nil, &ProtocolError{fmt.Sprintf("body of %d bytes is followed by %q", n, buf[n:])}
	}
	return buf[:n], nil
}

// refusal parses an error line.
func refusal(line string) error {
	switch {
	case line == "-NOT-FOUND":
		return ErrNotFound
	case line == "-TIMEOUT":
		return ErrTimeout
	case strings.HasPrefix(line, "-CLIENT-ERROR "):
		return &ClientError{strings.TrimPrefix(line, "-CLIENT-ERROR ")}
	case strings.HasPrefix(line, "-SERVER-ERROR "):
		return &ServerError{strings.TrimPrefix(line, "-SERVER-ERROR ")}
	default:
		return &ProtocolError{fmt.Sprintf("unexpected line %q", line)}
	}
}

// canonicalInt parses a decimal number without a sign and leading zeros.
func canonicalInt(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || strconv.Itoa(n) != s {
		return 0, &ProtocolError{fmt.Sprintf("number %q", s)}
	}
	return n, nil
}

// checkID checks that id is a UUIDv4 in lower case, as every id on the wire must be.
func checkID(id string) error {
	ok := len(id) == 36 && id[14] == '4' && strings.IndexByte("89ab", id[19]) >= 0
	for i := 0; ok && i < len(id); i++ {
		if hyphen := i == 8 || i == 13 || i == 18 || i == 23; hyphen {
			ok = id[i] == '-'
		} else {
			ok = strings.IndexByte("0123456789abcdef", id[i]) >= 0
		}
	}
	if !ok {
		return &ProtocolError{fmt.Sprintf("id %q is no canonical UUID of version 4", id)}
	}
	return nil
}
