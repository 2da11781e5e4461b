package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
)

const faktoryQueue = "bench"

type faktory struct{}

func (faktory) caller(*tally) session { return nil }

// greet answers the server's HI as a worker does.
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
	args, err := json.Marshal([]string{body})
	if err != nil {
		panic(err) // a list of strings can always be written
	}
	tail := fmt.Sprintf(`","queue":%q,"jobtype":"Bench","args":%s,"created_at":"2026-01-01T00:00:00Z","retry":25}`,
		faktoryQueue, args) + "\r\n"
	return &lineProducer{
		pipeline: newPipeline(t, inFlight, func(b []byte, n int) []byte {
			b = append(b, prefix...)
			b = strconv.AppendInt(b, int64(n), 10)
			return append(b, tail...)
		}),
		want: []byte("+OK"),
	}
}

func (faktory) worker(t *tally) session { return &faktoryWorker{tally: t} }

// faktoryWorker fetches, and sends the ACK and the next FETCH in one write.
type faktoryWorker struct{ tally *tally }

var (
	faktoryFetch = []byte("FETCH " + faktoryQueue + "\r\n")
	faktoryJid   = []byte(`"jid":"`)
)

func (w *faktoryWorker) begin(c *conn) { c.out = append(c.out, faktoryFetch...) }

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
			c.out = append(c.out, faktoryFetch...)
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
			c.out = append(c.out, `ACK {"jid":"`...)
			c.out = append(c.out, rest[:end]...)
			c.out = append(c.out, "\"}\r\n"...)
			c.out = append(c.out, faktoryFetch...)
			size += n + 2
		default:
			return 0, fmt.Errorf("faktory worker got %q", line)
		}
		used += size
	}
}
