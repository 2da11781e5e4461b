package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"broker/integration/server"
)

// natsName is the contender of three NATS servers with a stream that all of them replicate.
const natsName = "nats jetstream R3"

// startNATS starts three NATS servers that sync every write, with a work queue and a pull consumer on it. Clients
// connect to the leader of the stream, as they do to that of the broker's cluster.
func startNATS(binary, dir string) (*running, error) {
	all, err := server.StartNATS(binary, dir, nodes)
	if err != nil {
		return nil, err
	}
	r := &running{stop: func() {
		for _, p := range all {
			p.Kill()
		}
	}}
	for _, p := range all {
		r.pids = append(r.pids, p.PID())
	}
	r.tail = all[0].Tail
	leader, err := natsQueue(all[0].Addr)
	if err == nil {
		for i, p := range all {
			if leader == fmt.Sprint("nats-", i+1) {
				r.addr, r.tail = p.Addr, p.Tail
			}
		}
		if r.addr == "" {
			err = fmt.Errorf("no server of NATS leads the stream: %q", leader)
		}
	}
	if err != nil {
		r.stop()
		return nil, fmt.Errorf("%w\n%s", err, r.tail())
	}
	return r, nil
}

// natsQueue makes the work queue, and returns the server that leads it.
func natsQueue(addr string) (leader string, err error) {
	conn, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }() // the setup is done, or has failed
	if err := natsGreet(conn); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, "SUB _INBOX.setup 1\r\n"); err != nil {
		return "", err
	}
	in := bufio.NewReader(conn)
	const stream = `{"name":"JOBS","subjects":["bench"],"retention":"workqueue","storage":"file","num_replicas":3,"discard":"new"}`
	const consumer = `{"stream_name":"JOBS","config":{"durable_name":"WORK","ack_policy":"explicit","deliver_policy":"all",` +
		`"ack_wait":3600000000000,"max_ack_pending":100000,"max_waiting":100000}}`
	for _, r := range []struct{ api, body string }{
		{"STREAM.CREATE.JOBS", stream}, {"CONSUMER.DURABLE.CREATE.JOBS.WORK", consumer}, {"STREAM.INFO.JOBS", ""},
	} {
		if leader, err = natsAsk(conn, in, r.api, r.body); err != nil {
			return "", err
		}
	}
	return leader, nil
}

// natsAsk sends a request to JetStream until it is accepted, since the servers need a moment to find each other. It
// returns the server that leads what was asked for.
func natsAsk(conn net.Conn, in *bufio.Reader, api, body string) (leader string, err error) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		_ = conn.SetDeadline(time.Now().Add(2 * time.Second)) // a broken connection fails the next call
		if _, err = fmt.Fprintf(conn, "PUB $JS.API.%s _INBOX.setup %d\r\n%s\r\n", api, len(body), body); err != nil {
			return "", err
		}
		var payload []byte
		if payload, err = natsReply(in); errors.Is(err, errNATSSilent) {
			continue
		} else if err != nil {
			return "", err
		}
		var answer struct {
			Error   *struct{ Description string }
			Cluster struct{ Leader string }
		}
		if err = json.Unmarshal(payload, &answer); err != nil {
			return "", fmt.Errorf("%s: %w: %q", api, err, payload)
		}
		if answer.Error == nil {
			return answer.Cluster.Leader, nil
		}
		err = fmt.Errorf("%s: %s", api, answer.Error.Description)
	}
	return "", err
}

// errNATSSilent says that a request got no answer in time.
var errNATSSilent = errors.New("NATS does not answer")

// natsReply reads the next message.
func natsReply(in *bufio.Reader) ([]byte, error) {
	var pending []byte
	for {
		line, err := in.ReadBytes('\n')
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return nil, errNATSSilent
		}
		if err != nil {
			return nil, err
		}
		pending = append(pending, line...)
		m, err := nextNATS(pending)
		switch {
		case err != nil:
			return nil, err
		case m.size == 0:
		case m.kind == natsMessage && m.headers:
			return nil, errNATSSilent // nobody serves the subject yet
		case m.kind == natsMessage:
			return m.payload, nil
		default:
			pending = pending[m.size:]
		}
	}
}

// natsGreet is the handshake.
func natsGreet(rw io.ReadWriter) error {
	if _, err := io.WriteString(rw,
		`CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true}`+"\r\nPING\r\n"); err != nil {
		return err
	}
	var got []byte
	for one := make([]byte, 1); !bytes.HasSuffix(got, []byte("PONG\r\n")); {
		if _, err := io.ReadFull(rw, one); err != nil {
			return err
		}
		if got = append(got, one...); bytes.Contains(got, []byte("-ERR")) {
			return fmt.Errorf("NATS says %q", got)
		}
	}
	return nil
}

// natsKind is a kind of message of a NATS server.
type natsKind int

const (
	natsMessage natsKind = iota + 1 // MSG or HMSG
	natsPing
	natsOther // INFO, PONG, +OK
)

// natsMsg is a message of a server; size is zero if it is incomplete.
type natsMsg struct {
	kind    natsKind
	line    []byte
	headers bool   // a status in place of a job
	reply   []byte // where it is acknowledged
	payload []byte
	size    int
}

// nextNATS parses the first message of b.
func nextNATS(b []byte) (natsMsg, error) {
	line, size := nextLine(b)
	if size == 0 {
		return natsMsg{}, nil
	}
	m := natsMsg{kind: natsOther, size: size, line: line}
	switch {
	case bytes.HasPrefix(line, []byte("MSG ")):
	case bytes.HasPrefix(line, []byte("HMSG ")):
		m.headers = true
	case bytes.Equal(line, []byte("PING")):
		m.kind = natsPing
		return m, nil
	case bytes.HasPrefix(line, []byte("-ERR")):
		return m, fmt.Errorf("NATS says %q", line)
	default:
		return m, nil
	}
	m.kind = natsMessage
	length, err := atoi(lastWord(line))
	if err != nil {
		return m, err
	}
	if len(b) < size+length+2 {
		return natsMsg{}, nil
	}
	m.payload, m.size = b[size:size+length], size+length+2
	if !m.headers && bytes.Count(line, []byte{' '}) == 4 { // MSG subject sid reply size
		m.reply = word(line, 3)
	}
	return m, nil
}

// nats speaks the protocol of NATS: jobs are published to the stream, pulled one by one, and acknowledged; each step is
// answered by the servers once a majority has it.
type nats struct{}

func (nats) greet() func(io.ReadWriter) error { return natsGreet }

func (nats) caller(*tally) session { return nil }

func (nats) producer(t *tally, inFlight int) session {
	p := &natsProducer{inbox: newInbox()}
	put := fmt.Appendf(nil, "PUB bench %s %d\r\n%s\r\n", p.inbox, len(t.body), t.body)
	p.pipeline = newPipeline(t, inFlight, func(b []byte, _ int) []byte { return append(b, put...) })
	return p
}

func (nats) worker(t *tally) session {
	w := &natsWorker{tally: t, jobs: newInbox(), acks: newInbox()}
	const pull = `{"batch":1,"expires":3600000000000}`
	w.pull = fmt.Appendf(nil, "PUB $JS.API.CONSUMER.MSG.NEXT.JOBS.WORK %s %d\r\n%s\r\n", w.jobs, len(pull), pull)
	return w
}

// inboxes counts the subjects for answers: each connection has its own.
var inboxes atomic.Int64

func newInbox() string { return fmt.Sprint("_INBOX.", inboxes.Add(1)) }

// natsProducer publishes jobs; the stream acknowledges them in order.
type natsProducer struct {
	pipeline

	inbox string
}

func (p *natsProducer) open(rw io.ReadWriter) error {
	_, err := fmt.Fprintf(rw, "SUB %s 1\r\n", p.inbox)
	return err
}

func (p *natsProducer) feed(c *conn, b []byte) (int, error) {
	used := 0
	for {
		m, err := nextNATS(b[used:])
		if err != nil {
			return 0, err
		}
		if m.size == 0 {
			break
		}
		used += m.size
		switch {
		case m.kind == natsPing:
			c.out = append(c.out, "PONG\r\n"...)
		case m.kind != natsMessage:
		case m.headers || !bytes.Contains(m.payload, []byte(`"seq":`)):
			return 0, fmt.Errorf("NATS refused a job: %q %q", m.line, m.payload)
		default:
			p.answered(c)
		}
	}
	p.fill(c)
	return used, nil
}

// natsWorker pulls a job at a time, and sends each acknowledgement with the next pull in one write.
type natsWorker struct {
	tally      *tally
	jobs, acks string // subjects
	pull       []byte
	begun      bool
}

func (w *natsWorker) open(rw io.ReadWriter) error {
	_, err := fmt.Fprintf(rw, "SUB %s 1\r\nSUB %s 2\r\n", w.jobs, w.acks)
	return err
}

func (w *natsWorker) begin(c *conn) {
	if !w.begun {
		w.begun = true
		c.out = append(c.out, w.pull...)
	}
}

func (w *natsWorker) feed(c *conn, b []byte) (int, error) {
	used := 0
	for {
		m, err := nextNATS(b[used:])
		if err != nil || m.size == 0 {
			return used, err
		}
		used += m.size
		switch {
		case m.kind == natsPing:
			c.out = append(c.out, "PONG\r\n"...)
		case m.kind != natsMessage:
		case m.headers && bytes.Equal(word(m.line, 1), []byte(w.jobs)):
			c.out = append(c.out, w.pull...) // the pull was answered with a status
		case m.headers:
			return 0, fmt.Errorf("NATS refused an acknowledgement: %q %q", m.line, m.payload)
		case bytes.Equal(word(m.line, 1), []byte(w.acks)):
			w.tally.finish(c.now)
		default:
			c.out = append(c.out, "PUB "...)
			c.out = append(c.out, m.reply...)
			c.out = append(append(append(c.out, ' '), w.acks...), " 4\r\n+ACK\r\n"...)
			c.out = append(c.out, w.pull...)
		}
	}
}
