package main

import (
	"bufio"
	"bytes"
	"crypto/sha1" // the name of a script, not a secret
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
)

// qless puts, pops and completes jobs as a Qless client does: three calls of EVALSHA a job. A plain Redis runs a
// trivial script in place of the one of Qless. It keeps nothing: that is the lower bound of what these calls cost on a
// Redis.
type qless struct{ script string }

const (
	qlessName     = "qless"
	trivialName   = "redis, trivial script"
	trivialScript = "return ARGV[1]"
	qlessScript   = "local QlessAPI = {}" // enough for the broker to recognize it
)

// greet loads the script.
func (q qless) greet() func(io.ReadWriter) error {
	return func(rw io.ReadWriter) error {
		if _, err := rw.Write(appendCommand(nil, "SCRIPT", "LOAD", q.script)); err != nil {
			return err
		}
		in := bufio.NewReader(rw)
		for _, want := range []string{"$40\r\n", q.sha() + "\r\n"} {
			if line, err := in.ReadString('\n'); err != nil || line != want {
				return fmt.Errorf("SCRIPT LOAD answered with %q: %w", line, err)
			}
		}
		return nil
	}
}

func (q qless) sha() string {
	sum := sha1.Sum([]byte(q.script))
	return hex.EncodeToString(sum[:])
}

func (qless) caller(*tally) session { return nil }

func appendCommand(b []byte, words ...string) []byte {
	b = append(strconv.AppendInt(append(b, '*'), int64(len(words)), 10), "\r\n"...)
	for _, w := range words {
		b = append(strconv.AppendInt(append(b, '$'), int64(len(w)), 10), "\r\n"...)
		b = append(append(b, w...), "\r\n"...)
	}
	return b
}

func (q qless) producer(t *tally, inFlight int) session {
	sha, data := q.sha(), strconv.Quote(t.body)
	prefix := fmt.Sprintf("%08x-", rand.Uint32())
	return &qlessProducer{newPipeline(t, inFlight, func(b []byte, n int) []byte {
		now := fmt.Sprintf("1700000000.%06d", n%1e6) // jobs are popped in the order of their puts
		return appendCommand(b, "EVALSHA", sha, "0", "put", now, "bench", t.queue(n), prefix+strconv.Itoa(n), "Bench",
			data, "0")
	})}
}

// qlessProducer reads the id of each job.
type qlessProducer struct{ pipeline }

func (p *qlessProducer) feed(c *conn, b []byte) (int, error) {
	used := 0
	for {
		_, size, err := nextBulk(b[used:])
		if err != nil {
			return 0, err
		}
		if size == 0 {
			break
		}
		used += size
		p.answered(c)
	}
	p.fill(c)
	return used, nil
}

// nextBulk returns the first string of b, and its length with its frame; 0 if it is incomplete.
func nextBulk(b []byte) (text []byte, size int, err error) {
	line, head := nextLine(b)
	if head == 0 {
		return nil, 0, nil
	}
	if !bytes.HasPrefix(line, []byte("$")) {
		return nil, 0, fmt.Errorf("%q in place of a string", line)
	}
	n, err := atoi(line[1:])
	if err != nil || len(b) < head+n+2 {
		return nil, 0, err
	}
	return b[head : head+n], head + n + 2, nil
}

func (q qless) worker(t *tally) session { return &qlessWorker{leaser: newLeaser(t), sha: q.sha()} }

// qlessWorker pops jobs one at a time, and sends each completion with the next pop in one write.
type qlessWorker struct {
	leaser

	sha   string
	queue string // that it pops from; empty: it has all its jobs
}

const qlessWorkerNow = "1700000001"

// begin is also called again a while after a pop has found no job.
func (w *qlessWorker) begin(c *conn) {
	if w.queue == "" {
		w.lease(c)
		return
	}
	w.pop(c)
}

func (w *qlessWorker) lease(c *conn) {
	queue, more := w.next()
	if !more {
		w.queue = ""
		w.release(c)
		return
	}
	w.ask(c)
	w.queue = queue
	w.pop(c)
}

func (w *qlessWorker) pop(c *conn) {
	c.out = appendCommand(c.out, "EVALSHA", w.sha, "0", "pop", qlessWorkerNow, w.queue, "bench", "1")
}

func (w *qlessWorker) feed(c *conn, b []byte) (int, error) {
	used := 0
	for {
		text, size, err := nextBulk(b[used:])
		switch {
		case err != nil:
			return 0, err
		case size == 0:
			return used, nil
		case string(text) == "complete":
			w.tally.finish(c.now)
		case string(text) == "{}": // no job yet
			c.stalled = true
		default:
			out := w.got(c)
			*out = appendCommand(*out, "EVALSHA", w.sha, "0", "complete", qlessWorkerNow, qlessJid(text), "bench",
				w.queue, "{}")
			w.lease(c)
		}
		used += size
	}
}

// qlessJid is the id of a job that was popped. The trivial script has none.
func qlessJid(jobs []byte) string {
	_, rest, found := bytes.Cut(jobs, []byte(`"jid":"`))
	if end := bytes.IndexByte(rest, '"'); found && end > 0 {
		return string(rest[:end])
	}
	return "0123456789"
}
