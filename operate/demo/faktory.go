package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"broker/migrate/wire"
)

// dial connects to an address. The connection closes when the context ends, so that no read blocks forever.
func dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", address)
	if err == nil {
		context.AfterFunc(ctx, func() { _ = conn.Close() }) // the client sees its read fail
	}
	return conn, err
}

// faktory is a connection of a Faktory client.
type faktory struct {
	conn net.Conn
	in   *bufio.Reader
}

// faktoryJob is a unit of work.
type faktoryJob struct {
	JID    string         `json:"jid"`
	Type   string         `json:"jobtype"`
	Args   []any          `json:"args"`
	Queue  string         `json:"queue,omitempty"`
	At     string         `json:"at,omitempty"`
	Retry  *int           `json:"retry,omitempty"`
	Custom map[string]any `json:"custom,omitempty"`
}

// dialFaktory connects a producer, or with a wid a worker.
func dialFaktory(ctx context.Context, address, wid string) (*faktory, error) {
	conn, err := dial(ctx, address)
	if err != nil {
		return nil, err
	}
	f := &faktory{conn, bufio.NewReader(conn)}
	hi, err := f.reply()
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if wid != "" {
		host := wid[:strings.LastIndexByte(wid, '-')] + ".shop.example"
		fields = map[string]any{"wid": wid, "hostname": host, "pid": os.Getpid(), "labels": []string{"demo"}}
	}
	hello, _, err := wire.Hello(hi, "", fields)
	if err != nil {
		return nil, err
	}
	_, err = f.send(hello)
	return f, err
}

func (f *faktory) close() { _ = f.conn.Close() } // nothing is left to say

// send sends a command and reads the reply.
func (f *faktory) send(command string) (string, error) {
	if _, err := io.WriteString(f.conn, command+"\r\n"); err != nil {
		return "", err
	}
	return f.reply()
}

// ask sends a command with a value in JSON and reads the reply.
func (f *faktory) ask(verb string, value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	return f.send(verb + " " + string(text))
}

// sendJSON is ask for a command that is answered with OK.
func (f *faktory) sendJSON(verb string, value any) error {
	_, err := f.ask(verb, value)
	return err
}

// refusal is an error that Faktory answers with.
type refusal string

func (r refusal) Error() string { return "faktory: " + string(r) }

// reply reads a reply: a line, or a bulk string; empty for a null string.
func (f *faktory) reply() (string, error) {
	raw, err := wire.ReadRESP(f.in, wire.MaxMessage)
	if err != nil {
		return "", err
	}
	text := string(wire.RESPText(raw))
	if wire.IsRESPError(raw) {
		return "", refusal(text)
	}
	return text, nil
}

// fetch takes a job from one of the queues; nil if none arrives for a while.
func (f *faktory) fetch(queues ...string) (*faktoryJob, error) {
	text, err := f.send("FETCH " + strings.Join(queues, " "))
	if err != nil || text == "" {
		return nil, err
	}
	var j faktoryJob
	return &j, json.Unmarshal([]byte(text), &j)
}

func (f *faktory) ack(jid string) error { return f.sendJSON("ACK", map[string]string{"jid": jid}) }

func (f *faktory) fail(jid, class, message string, backtrace []string) error {
	return f.sendJSON("FAIL", map[string]any{"jid": jid, "errtype": class, "message": message, "backtrace": backtrace})
}
