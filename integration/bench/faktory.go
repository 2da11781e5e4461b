package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"time"
)

type faktory struct{}

func (faktory) caller(*tally) session { return nil }

// greet replies to the server's HI as a worker does.
func (faktory) greet() func(io.ReadWriter) error {
	return func(rw io.ReadWriter) error {
		in := bufio.NewReader(rw)
		if line, err := in.ReadString('\n'); err != nil || line != "+HI {\"v\":2}\r\n" {
			return fmt.Errorf("greeted with %q: %w", line, err)
		}
		hello := fmt.Sprintf(`HELLO {"hostname":"bench","wid":"%x","pid":1,"labels":[],"v":2}`, rand.Uint64())
		if _, err := io.WriteString(rw, hello+"\r\n"); err != nil {
			return err
		}
		if line, err := in.ReadString('\n'); err != nil || line != "+OK\r\n" {
			return fmt.Errorf("HELLO answered with %q: %w", line, err)
		}
		return nil
	}
}

func (faktory) producer(t *tally, inFlight int) session {
	prefix := fmt.Sprintf(`PUSH {"jid":"%08x-`, rand.Uint32())
	head := fmt.Sprintf(`,"jobtype":"Bench","args":[%q`, t.body)
	tail := `],"created_at":"2026-01-01T00:00:00Z","retry":25`
	if t.due != 0 {
		tail += time.Unix(t.due, 0).UTC().Format(`,"at":"2006-01-02T15:04:05Z"`)
	}
	if t.keyed {
		tail += `,"custom":{"unique_for":3600}`
	}
	tail += "}\r\n"
	return &lineProducer{
		pipeline: newPipeline(t, inFlight, func(b []byte, n int) []byte {
			b = append(b, prefix...)
			b = strconv.AppendInt(b, int64(n), 10)
			b = append(b, `","queue":"`...)
			b = append(append(b, t.queue(n)...), '"')
			b = append(b, head...)
			if t.keyed { // the arguments are what makes a job unique
				b = append(t.appendKey(append(b, `,"`...), n), '"')
			}
			return append(b, tail...)
		}),
		want: []byte("+OK"),
	}
}

func (faktory) worker(t *tally) session { return &faktoryWorker{leaser: newLeaser(t)} }

// faktoryWorker fetches jobs, and sends each ACK with the next FETCH in one write.
type faktoryWorker struct {
	leaser

	queue string // that it waits for
}

var faktoryJid = []byte(`"jid":"`)

func (w *faktoryWorker) begin(c *conn) { w.lease(c) }

func (w *faktoryWorker) lease(c *conn) {
	queue, more := w.next()
	if !more {
		w.release(c)
		return
	}
	w.ask(c)
	w.queue = queue
	w.fetch(c)
}

func (w *faktoryWorker) fetch(c *conn) {
	c.out = append(c.out, "FETCH "...)
	c.out = append(c.out, w.queue...)
	c.out = append(c.out, "\r\n"...)
}

func (w *faktoryWorker) feed(c *conn, b []byte) (int, error) {
	used := 0
	for {
		line, size := nextLine(b[used:])
		if size == 0 {
			return used, nil
		}
		switch {
		case bytes.Equal(line, []byte("+OK")):
			w.tally.finish(c.now)
		case bytes.Equal(line, []byte("$-1")):
			w.fetch(c)
		case bytes.HasPrefix(line, []byte("$")):
			n, err := atoi(line[1:])
			if err != nil {
				return 0, err
			}
			if len(b)-used < size+n+2 {
				return used, nil
			}
			_, rest, found := bytes.Cut(b[used+size:used+size+n], faktoryJid)
			end := bytes.IndexByte(rest, '"')
			if !found || end < 0 {
				return 0, fmt.Errorf("job without a jid: %q", b[used:used+size+n])
			}
			out := w.got(c)
			*out = append(*out, `ACK {"jid":"`...)
			*out = append(*out, rest[:end]...)
			*out = append(*out, "\"}\r\n"...)
			w.lease(c)
			size += n + 2
		default:
			return 0, fmt.Errorf("faktory worker got %q", line)
		}
		used += size
	}
}
