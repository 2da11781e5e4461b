// Package beanstalkclient is a strict Beanstalk client: an unexpected reply is an error.
package beanstalkclient

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// replyWait is how long a reply may take, in addition to the time that a reserve may wait; the machine may be busy.
const replyWait = 2 * time.Minute

// Refusal is an error reply.
type Refusal string

func (r Refusal) Error() string { return "beanstalk: " + string(r) }

// Refusals that callers distinguish.
const (
	NotFound = Refusal("NOT_FOUND")
	TimedOut = Refusal("TIMED_OUT")
)

// refusals are the error replies of the protocol.
var refusals = map[string]bool{
	"NOT_FOUND": true, "TIMED_OUT": true, "DEADLINE_SOON": true, "BAD_FORMAT": true, "UNKNOWN_COMMAND": true,
	"OUT_OF_MEMORY":  true,
	"INTERNAL_ERROR": true, "JOB_TOO_BIG": true, "EXPECTED_CRLF": true, "DRAINING": true, "NOT_IGNORED": true,
}

// Client is a connection for one goroutine.
type Client struct {
	conn net.Conn
	in   *bufio.Reader
}

// Job is a job of a tube. Pri, Delay and TTR (whole seconds) are those of put.
type Job struct {
	Pri        uint32
	Delay, TTR time.Duration
	Body       []byte
}

// Reserved is a job as it is handed out.
type Reserved struct {
	ID   string
	Body []byte
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

// Put puts jobs into the used tube, all in one packet, and returns their ids.
func (c *Client) Put(jobs ...Job) (ids []string, err error) {
	var out []byte
	for _, j := range jobs {
		out = fmt.Appendf(out, "put %d %d %d %d\r\n%s\r\n", j.Pri, int(j.Delay.Seconds()), int(j.TTR.Seconds()),
			len(j.Body), j.Body)
	}
	if _, err := c.conn.Write(out); err != nil {
		return nil, err
	}
	for range jobs {
		words, err := c.reply("INSERTED", 1, 0)
		if err != nil {
			return ids, err
		}
		ids = append(ids, words[0])
	}
	return ids, nil
}

// Do sends a command, and checks that its reply is a word and nothing else.
func (c *Client) Do(want, command string) error {
	_, err := c.ask(command, want, 0, 0)
	return err
}

// Use changes the tube of Put.
func (c *Client) Use(tube string) error {
	words, err := c.ask("use "+tube, "USING", 1, 0)
	if err == nil && words[0] != tube {
		return fmt.Errorf("use %s: using %s", tube, words[0])
	}
	return err
}

// Watch adds a tube to those that Reserve takes jobs from.
func (c *Client) Watch(tube string) error {
	_, err := c.ask("watch "+tube, "WATCHING", 1, 0)
	return err
}

// Ignore removes a tube from those that Reserve takes jobs from.
func (c *Client) Ignore(tube string) error {
	_, err := c.ask("ignore "+tube, "WATCHING", 1, 0)
	return err
}

// Kick makes buried jobs of the used tube ready; if there are none, delayed ones.
func (c *Client) Kick(most int) (n int, err error) {
	words, err := c.ask("kick "+strconv.Itoa(most), "KICKED", 1, 0)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(words[0])
}

// Reserve takes a job; it waits for one.
func (c *Client) Reserve(wait time.Duration) (Reserved, error) {
	words, err := c.ask(fmt.Sprintf("reserve-with-timeout %d", int(wait.Seconds())), "RESERVED", 2, wait)
	if err != nil {
		return Reserved{}, err
	}
	body, err := c.body(words[1])
	return Reserved{ID: words[0], Body: body}, err
}

// Stats are the values of a dictionary, such as that of "stats-job 1".
func (c *Client) Stats(command string) (map[string]string, error) {
	words, err := c.ask(command, "OK", 1, 0)
	if err != nil {
		return nil, err
	}
	body, err := c.body(words[0])
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(string(body), "\n"), "\n")
	if lines[0] != "---" {
		return nil, fmt.Errorf("%s: not YAML: %q", command, body)
	}
	values := make(map[string]string, len(lines))
	for _, line := range lines[1:] {
		key, value, found := strings.Cut(line, ": ")
		if !found || value == "" {
			return nil, fmt.Errorf("%s: %q has no value", command, line)
		}
		values[key] = value
	}
	return values, nil
}

// ask sends a command and reads the line of its reply.
func (c *Client) ask(command, want string, words int, wait time.Duration) ([]string, error) {
	if _, err := io.WriteString(c.conn, command+"\r\n"); err != nil {
		return nil, err
	}
	return c.reply(want, words, wait)
}

// reply reads a line: a word, and so many more.
func (c *Client) reply(want string, words int, wait time.Duration) ([]string, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(wait + replyWait)); err != nil {
		return nil, err
	}
	line, err := c.in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	text, ended := strings.CutSuffix(line, "\r\n")
	if refusals[text] && text != want {
		return nil, Refusal(text)
	}
	got := strings.Split(text, " ")
	if !ended || got[0] != want || len(got) != words+1 {
		return nil, fmt.Errorf("got %q, want %s and %d words", line, want, words)
	}
	return got[1:], nil
}

// body reads so many bytes and the end of their line.
func (c *Client) body(size string) ([]byte, error) {
	n, err := strconv.ParseUint(size, 10, 31)
	if err != nil {
		return nil, err
	}
	b := make([]byte, n+2)
	if _, err := io.ReadFull(c.in, b); err != nil {
		return nil, err
	}
	if string(b[n:]) != "\r\n" {
		return nil, fmt.Errorf("a body of %d bytes ends with %q", n, b[n:])
	}
	return b[:n], nil
}
