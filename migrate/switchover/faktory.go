package switchover

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"

	"broker/migrate/wire"
)

// faktory serves Faktory's clients and workers.
type faktory struct {
	s      *Switch
	owners *owners
	depths [2]depths // of the server and of the broker
}

func newFaktory(s *Switch) protocol { return &faktory{s: s, owners: newOwners(maxOwners)} }

// maxOwners limits the jobs whose side is remembered.
const maxOwners = 1 << 20

func (f *faktory) check() error {
	return f.s.broker.check(f.s.replyWithin, (&faktoryConn{f: f}).greet)
}

func (f *faktory) join(client, server net.Conn) {
	c := &faktoryConn{f: f, sequence: newSequence(f.s, client, server)}
	c.d = c
	c.server.pending = []*exchange{{}} // the greeting
	c.last = c.server
	c.serve()
}

// faktoryConn is a client.
type faktoryConn struct {
	*sequence

	f        *faktory
	hello    map[string]any // the client's HELLO
	admitted bool           // the server has accepted the HELLO
	turn     bool           // the broker is asked first for the next job
}

func (c *faktoryConn) request(in *bufio.Reader) ([]byte, error) {
	return wire.ReadLine(in, wire.MaxMessage)
} // it may be a list of jobs

func (c *faktoryConn) reply(in *bufio.Reader) ([]byte, error) { return readRESP(in) }

// readRESP reads a reply of Faktory that is passed on.
func readRESP(in *bufio.Reader) ([]byte, error) { return wire.ReadRESP(in, wire.MaxMessage) }

func (c *faktoryConn) lost() []byte { return faktoryError(errLost) }

func faktoryError(err error) []byte { return fmt.Appendf(nil, "-ERR %v\r\n", err) }

func faktoryString(b []byte) []byte { return fmt.Appendf(nil, "$%d\r\n%s\r\n", len(b), b) }

// greet implements dialect: it sends the client's HELLO to the broker, with the broker's password.
func (c *faktoryConn) greet(conn net.Conn, in *bufio.Reader) error {
	hi, err := readRESP(in)
	if err != nil {
		return fmt.Errorf("the broker: %w", err)
	}
	line, _, err := wire.Hello(string(wire.RESPText(hi)), c.f.s.opts.Password, c.hello)
	if err != nil {
		return fmt.Errorf("the broker: %w", err)
	}
	if _, err := fmt.Fprintf(conn, "%s\r\n", line); err != nil {
		return fmt.Errorf("%w: %w", errLate, err)
	}
	ok, err := readRESP(in)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errLate, err)
	case wire.IsRESPError(ok):
		return fmt.Errorf("the broker replied: %s", wire.RESPText(ok))
	}
	return nil
}

// handle implements dialect.
func (c *faktoryConn) handle(p []byte) error {
	verb, arg, _ := strings.Cut(strings.TrimRight(string(p), "\r\n"), " ")
	verb = strings.ToUpper(verb)
	if verb == "HELLO" {
		return c.introduce(p, arg)
	}
	if !c.admitted { // only the server checks the client's password
		return c.pass(c.server, p, nil)
	}
	switch verb {
	case "PUSH":
		return c.push(p, arg)
	case "PUSHB":
		return c.pushMany(p, arg)
	case "FETCH":
		return c.fetch(p, strings.Fields(arg))
	case "ACK", "FAIL":
		return c.finish(p, arg)
	case "BEAT":
		return c.beat(p)
	}
	return c.pass(c.server, p, nil)
}

// introduce passes HELLO to the server, which decides whether to accept the client.
func (c *faktoryConn) introduce(p []byte, arg string) error {
	reply, err := c.call(c.server, p)
	if err != nil {
		return err
	}
	if !c.admitted && !wire.IsRESPError(reply) {
		c.admitted, c.hello = true, nil
		_ = json.Unmarshal([]byte(arg), &c.hello) // the server has read it
	}
	return c.respond(reply)
}

// queueOf is the queue of a job. Text that is not a job goes to the server, which refuses it.
func queueOf(job []byte) string {
	var j struct {
		Queue string `json:"queue"`
	}
	_ = json.Unmarshal(job, &j)
	return cmp.Or(j.Queue, "default")
}

func (c *faktoryConn) push(p []byte, arg string) error {
	if !c.s.any() {
		return c.pass(c.server, p, nil)
	}
	e := c.s.find(queueOf([]byte(arg)))
	counted := func(byBroker bool) func([]byte) []byte {
		return func(reply []byte) []byte {
			if !wire.IsRESPError(reply) {
				e.accepted(byBroker)
			}
			return reply
		}
	}
	if e == nil || e.state != New {
		return c.pass(c.server, p, counted(false))
	}
	b, err := c.atBroker()
	if err != nil {
		return c.respond(faktoryError(err))
	}
	return c.pass(b, p, counted(true))
}

// pushMany submits a list of jobs. It splits the list into one list for each side.
func (c *faktoryConn) pushMany(p []byte, arg string) error {
	var jobs []json.RawMessage
	if !c.s.any() || json.Unmarshal([]byte(arg), &jobs) != nil {
		return c.pass(c.server, p, nil)
	}
	var split [2][]json.RawMessage // for the server, for the broker
	for _, j := range jobs {
		side := 0
		if e := c.s.find(queueOf(j)); e != nil && e.state == New {
			side = 1
		}
		split[side] = append(split[side], j)
	}
	refused := make(map[string]string)
	for side, part := range split {
		if len(part) == 0 && (side == 1 || len(jobs) > 0) {
			continue // the server replies to an empty list
		}
		if err := c.pushPart(side == 1, part, refused); err != nil {
			if len(part) == len(jobs) {
				return c.respond(faktoryError(err))
			}
			for _, j := range part {
				refused[jidOf(j)] = err.Error()
			}
		}
	}
	text, err := json.Marshal(refused)
	if err != nil {
		return err
	}
	return c.respond(faktoryString(text))
}

// pushPart submits jobs to a side and collects the errors of refused jobs. An error return concerns all of them.
func (c *faktoryConn) pushPart(toBroker bool, jobs []json.RawMessage, refused map[string]string) error {
	side := c.server
	if toBroker {
		var err error
		if side, err = c.atBroker(); err != nil {
			return err
		}
	}
	list := []byte("PUSHB [")
	for i, j := range jobs {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, j...)
	}
	reply, err := c.call(side, append(list, "]\r\n"...))
	if err != nil {
		return err
	}
	var no map[string]string
	if wire.IsRESPError(reply) {
		return errors.New(strings.TrimPrefix(string(wire.RESPText(reply)), "ERR "))
	}
	if err := json.Unmarshal(wire.RESPText(reply), &no); err != nil {
		return err
	}
	maps.Copy(refused, no)
	for _, j := range jobs {
		if _, is := no[jidOf(j)]; !is {
			c.s.find(queueOf(j)).accepted(toBroker)
		}
	}
	return nil
}

func jidOf(job []byte) string {
	var j struct {
		JID string `json:"jid"`
	}
	_ = json.Unmarshal(job, &j)
	return j.JID
}
