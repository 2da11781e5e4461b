package switchover

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"broker/migrate/wire"
)

// beanstalk serves Beanstalk clients.
type beanstalk struct{ s *Switch }

func (b beanstalk) check() error {
	return b.s.broker.check(b.s.replyWithin, func(conn net.Conn, in *bufio.Reader) error {
		if _, err := io.WriteString(conn, "list-tube-used\r\n"); err != nil {
			return err
		}
		_, err := wire.ReadLine(in, wire.MaxLine)
		return err
	})
}

func (b beanstalk) join(client, server net.Conn) {
	c := &beanstalkConn{sequence: newSequence(b.s, client, server), used: "default", watched: []string{"default"}}
	c.d = c
	c.serve()
}

// brokerIDs is added to the ids of the broker's jobs, because both sides count from one.
const brokerIDs = 1 << 50

// pollEvery is the pause between two attempts of a worker that waits for jobs of both sides.
const pollEvery = 50 * time.Millisecond

// beanstalkConn is a client.
type beanstalkConn struct {
	*sequence

	used    string
	watched []string
	turn    bool // ask the broker first for the next job

	// The state of the connection to the broker.
	atUsed    string
	atWatched []string
}

func (c *beanstalkConn) request(in *bufio.Reader) ([]byte, error) {
	line, err := wire.ReadLine(in, wire.MaxLine)
	if err != nil {
		return nil, err
	}
	words := bytes.Fields(line)
	if len(words) != 5 || string(words[0]) != "put" {
		return line, nil
	}
	return readBody(in, line, words[4])
}

func (c *beanstalkConn) reply(in *bufio.Reader) ([]byte, error) {
	line, err := wire.ReadLine(in, wire.MaxLine)
	if err != nil {
		return nil, err
	}
	words := bytes.Fields(line)
	if len(words) == 0 {
		return nil, wire.ErrFraming
	}
	switch string(words[0]) {
	case "RESERVED", "FOUND", "OK":
		return readBody(in, line, words[len(words)-1])
	}
	return line, nil
}

// readBody reads the bytes after a line that contains their number.
func readBody(in *bufio.Reader, line, count []byte) ([]byte, error) {
	size, err := strconv.ParseUint(string(count), 10, 63)
	switch {
	case err != nil:
		return line, nil // the server refuses it
	case size > wire.MaxMessage:
		return nil, wire.ErrFraming
	}
	body, err := wire.ReadFull(in, int(size)+len("\r\n"))
	return append(line, body...), err
}

// greet implements dialect: Beanstalk has no greeting.
func (c *beanstalkConn) greet(net.Conn, *bufio.Reader) error {
	c.atUsed, c.atWatched = "default", []string{"default"}
	return nil
}

// Errors of the protocol.
var (
	beanstalkDraining = []byte("DRAINING\r\n")       // the broker cannot be reached for a submission
	beanstalkInternal = []byte("INTERNAL_ERROR\r\n") // the outcome of a request is unknown
	beanstalkNotFound = []byte("NOT_FOUND\r\n")
)

func (c *beanstalkConn) lost() []byte { return beanstalkInternal }

// handle implements dialect.
func (c *beanstalkConn) handle(p []byte) error {
	line, _, _ := strings.Cut(string(p[:min(len(p), wire.MaxLine)]), "\n")
	words := strings.Fields(line)
	if len(words) == 0 {
		return c.pass(c.server, p, nil)
	}
	verb, arg := words[0], ""
	if len(words) > 1 {
		arg = words[1]
	}
	switch verb {
	case "put":
		return c.put(p)
	case "use":
		if isTube(arg) {
			c.used = arg
		}
	case "watch":
		if isTube(arg) && !slices.Contains(c.watched, arg) && len(c.watched) < maxQueues {
			c.watched = append(c.watched, arg)
		}
	case "ignore":
		if at := slices.Index(c.watched, arg); at >= 0 && len(c.watched) > 1 {
			c.watched = slices.Delete(c.watched, at, at+1)
		}
	case "reserve", "reserve-with-timeout":
		return c.reserve(p, verb, arg)
	case "delete", "release", "bury", "touch", "kick-job", "peek", "reserve-job", "stats-job":
		return c.byID(p, line, arg)
	case "kick":
		return c.kick(p, arg)
	case "peek-ready", "peek-delayed", "peek-buried":
		if c.s.both(c.used) {
			return c.eitherTube(p)
		}
	case "pause-tube":
		if c.s.both(arg) {
			return c.bothSides(p)
		}
	}
	return c.pass(c.server, p, nil)
}

// isTube reports whether beanstalkd accepts a name for a tube.
func isTube(name string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+/;.$_()"
	return name != "" && len(name) <= 200 && name[0] != '-' && strings.Trim(name, letters) == ""
}

func (c *beanstalkConn) put(p []byte) error {
	e := c.s.find(c.used)
	counted := func(byBroker bool) func([]byte) []byte {
		return func(reply []byte) []byte {
			if bytes.HasPrefix(reply, []byte("INSERTED")) {
				e.accepted(byBroker)
			}
			if byBroker {
				return withClientID(reply)
			}
			return reply
		}
	}
	switch {
	case e == nil:
		return c.pass(c.server, p, nil)
	case e.state != New:
		return c.pass(c.server, p, counted(false))
	}
	b, err := c.use()
	if err != nil {
		return c.respond(beanstalkDraining)
	}
	return c.pass(b, p, counted(true))
}

// use returns the broker's side, with the client's tube in use.
func (c *beanstalkConn) use() (*sequenceSide, error) {
	b, err := c.atBroker()
	if err != nil || c.atUsed == c.used {
		return b, err
	}
	reply, err := c.call(b, fmt.Appendf(nil, "use %s\r\n", c.used))
	if err == nil && !bytes.HasPrefix(reply, []byte("USING")) {
		err = fmt.Errorf("the broker replied %q to use", reply)
	}
	if err == nil {
		c.atUsed = c.used
	}
	return b, err
}

// watch returns the broker's side, watching these tubes. At least one tube is needed.
func (c *beanstalkConn) watch(tubes []string) (*sequenceSide, error) {
	b, err := c.atBroker()
	if err != nil || slices.Equal(c.atWatched, tubes) {
		return b, err
	}
	for _, change := range []struct {
		verb        string
		these, less []string
	}{{"watch", tubes, c.atWatched}, {"ignore", c.atWatched, tubes}} {
		for _, tube := range change.these {
			if slices.Contains(change.less, tube) {
				continue
			}
			reply, err := c.call(b, fmt.Appendf(nil, "%s %s\r\n", change.verb, tube))
			if err == nil && !bytes.HasPrefix(reply, []byte("WATCHING")) {
				err = fmt.Errorf("the broker replied %q to %s", reply, change.verb)
			}
			if err != nil {
				c.atWatched = nil // only some are watched; the next call tries again
				_ = b.conn.Close()
				return nil, err
			}
		}
	}
	c.atWatched = slices.Clone(tubes)
	return b, nil
}

// withClientID replaces the id in a reply of the broker by the id that the client sees.
func withClientID(reply []byte) []byte {
	line, rest, _ := bytes.Cut(reply, []byte("\r\n"))
	words := bytes.Fields(line)
	if len(words) < 2 {
		return reply
	}
	switch string(words[0]) {
	case "INSERTED", "BURIED", "RESERVED", "FOUND":
	case "OK": // stats-job
		return statsWithClientID(rest)
	default:
		return reply
	}
	id, err := strconv.ParseUint(string(words[1]), 10, 64)
	if err != nil || id >= brokerIDs {
		return beanstalkInternal
	}
	words[1] = strconv.AppendUint(nil, id+brokerIDs, 10)
	return slices.Concat(bytes.Join(words, []byte(" ")), []byte("\r\n"), rest)
}

// statsWithClientID is withClientID for a reply to stats-job.
func statsWithClientID(body []byte) []byte {
	const name = "\nid: "
	before, rest, _ := bytes.Cut(body, []byte(name))
	id, after, ok := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.ParseUint(string(bytes.TrimSpace(id)), 10, 64)
	if !ok || err != nil {
		return beanstalkInternal
	}
	body = slices.Concat(before, []byte(name), strconv.AppendUint(nil, n+brokerIDs, 10), []byte("\n"), after)
	return slices.Concat(fmt.Appendf(nil, "OK %d\r\n", len(body)-len("\r\n")), body)
}

// byID passes a request about a job to the side that has it.
func (c *beanstalkConn) byID(p []byte, line, arg string) error {
	id, err := strconv.ParseUint(arg, 10, 64)
	if err != nil || id < brokerIDs {
		return c.pass(c.server, p, nil)
	}
	b, err := c.atBroker()
	if err != nil {
		return c.respond(beanstalkInternal)
	}
	own := strings.Replace(line, arg, strconv.FormatUint(id-brokerIDs, 10), 1) + "\n"
	return c.pass(b, []byte(own), withClientID)
}

// kick kicks jobs of the server and then, if there are fewer, of the broker.
func (c *beanstalkConn) kick(p []byte, arg string) error {
	most, err := strconv.ParseUint(arg, 10, 32)
	if err != nil || !c.s.both(c.used) {
		return c.pass(c.server, p, nil)
	}
	reply, err := c.call(c.server, p)
	if err != nil {
		return err
	}
	kicked := kickedBy(reply)
	if b, err := c.use(); err == nil && kicked < most {
		if more, err := c.call(b, fmt.Appendf(nil, "kick %d\r\n", most-kicked)); err == nil {
			reply = fmt.Appendf(nil, "KICKED %d\r\n", kicked+kickedBy(more))
		}
	}
	return c.respond(reply)
}

func kickedBy(reply []byte) uint64 {
	count, _ := bytes.CutPrefix(bytes.TrimSpace(reply), []byte("KICKED "))
	n, _ := strconv.ParseUint(string(count), 10, 64) // zero: none
	return n
}

// eitherTube asks the server about the used tube; if the tube is unknown there, it asks the broker.
func (c *beanstalkConn) eitherTube(p []byte) error {
	reply, err := c.call(c.server, p)
	if err != nil {
		return err
	}
	if bytes.Equal(reply, beanstalkNotFound) {
		if b, err := c.use(); err == nil {
			if other, err := c.call(b, p); err == nil {
				reply = withClientID(other)
			}
		}
	}
	return c.respond(reply)
}

// bothSides sends a request to both sides. It ignores a side that finds nothing.
func (c *beanstalkConn) bothSides(p []byte) error {
	reply, err := c.call(c.server, p)
	if err != nil {
		return err
	}
	if b, err := c.atBroker(); err == nil {
		if other, err := c.call(b, p); err == nil && bytes.Equal(reply, beanstalkNotFound) {
			reply = other
		}
	}
	return c.respond(reply)
}

// reserve waits for a job of the watched tubes: at the server if all tubes are there, else alternately at both.
func (c *beanstalkConn) reserve(p []byte, verb, arg string) error {
	seconds, err := strconv.ParseUint(arg, 10, 32)
	if len(c.sharedTubes()) == 0 || verb == "reserve-with-timeout" && err != nil {
		return c.pass(c.server, p, nil)
	}
	deadline := time.Now().Add(time.Duration(seconds) * time.Second)
	for {
		reply, err := c.reserveNow()
		if err != nil {
			return err
		}
		late := verb == "reserve-with-timeout" && !time.Now().Before(deadline)
		if late || !bytes.HasPrefix(reply, []byte("TIMED_OUT")) {
			return c.respond(reply)
		}
		pause := time.NewTimer(pollEvery)
		select {
		case <-pause.C:
		case <-c.eof: // the client has disconnected
			pause.Stop()
			return errGone
		}
	}
}

// sharedTubes lists the watched tubes whose jobs may be on either side.
func (c *beanstalkConn) sharedTubes() (shared []string) {
	for _, tube := range c.watched {
		if c.s.both(tube) && len(shared) < maxShared {
			shared = append(shared, tube)
		}
	}
	return shared
}

// maxShared is how many tubes a connection watches at the broker, which has a limit.
const maxShared = 1000

// reserveNow asks both sides for a job. It alternates which side comes first.
func (c *beanstalkConn) reserveNow() (reply []byte, err error) {
	c.turn = !c.turn
	first := c.turn
	for _, atBroker := range []bool{first, !first} {
		if reply, err = c.reserveAt(atBroker); err != nil || !bytes.HasPrefix(reply, []byte("TIMED_OUT")) {
			return reply, err
		}
	}
	return reply, nil
}

// reserveAt asks a side for a job. An unreachable broker counts as empty.
func (c *beanstalkConn) reserveAt(atBroker bool) ([]byte, error) {
	request := []byte("reserve-with-timeout 0\r\n")
	if !atBroker {
		return c.call(c.server, request)
	}
	none := []byte("TIMED_OUT\r\n")
	tubes := c.sharedTubes()
	if len(tubes) == 0 {
		return none, nil
	}
	b, err := c.watch(tubes)
	if err != nil {
		return none, nil
	}
	reply, err := c.call(b, request)
	if err != nil {
		return none, nil
	}
	return withClientID(reply), nil
}
