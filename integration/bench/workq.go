package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"time"
)

type workq struct{}

func (workq) greet() func(io.ReadWriter) error { return nil }

func (workq) producer(t *tally, inFlight int) session {
	ids := newIDs()
	command, times := "add ", " 600000 3600000 "
	if t.due != 0 {
		command, times = "schedule ", time.Unix(t.due, 0).UTC().Format(" 600000 3600000 2006-01-02T15:04:05Z ")
	}
	times += strconv.Itoa(len(t.body))
	return &lineProducer{
		pipeline: newPipeline(t, inFlight, func(b []byte, n int) []byte {
			b = append(b, command...)
			b = ids.append(b, n)
			b = append(append(b, ' '), t.queue(n)...)
			b = append(b, times...)
			if t.keyed {
				b = t.appendKey(append(b, " -unique="...), n)
			}
			return appendBody(b, t.body)
		}),
		want: []byte("+OK"),
	}
}

// appendBody ends the line and appends the body.
func appendBody(b []byte, body string) []byte {
	b = append(b, "\r\n"...)
	b = append(b, body...)
	return append(b, "\r\n"...)
}

func (workq) caller(t *tally) session {
	ids := newIDs()
	times := fmt.Sprintf(" 600000 60000 %d", len(t.body))
	return &workqCaller{newPipeline(t, 1, func(b []byte, n int) []byte {
		b = append(b, "run "...)
		b = ids.append(b, n)
		b = append(append(b, ' '), t.queue(n)...)
		return appendBody(append(b, times...), t.body)
	})}
}

func (workq) worker(t *tally) session { return &workqWorker{newLeaser(t)} }

// workqCaller runs jobs: the reply has two lines and a body.
type workqCaller struct{ pipeline }

func (p *workqCaller) feed(c *conn, b []byte) (int, error) {
	used := 0
	for {
		block, err := workqBlock(b[used:])
		if err != nil {
			return 0, err
		}
		if block.size == 0 {
			break
		}
		used += block.size
		p.answered(c)
	}
	p.fill(c)
	return used, nil
}

// workqWorker leases jobs, and sends each completion with the next lease in one write.
type workqWorker struct{ leaser }

func (w *workqWorker) begin(c *conn) { w.lease(c) }

func (w *workqWorker) lease(c *conn) {
	queue, more := w.next()
	if !more {
		w.release(c)
		return
	}
	w.ask(c)
	c.out = append(c.out, "lease "...)
	c.out = append(c.out, queue...)
	c.out = append(c.out, " 3600000\r\n"...)
}

func (w *workqWorker) feed(c *conn, b []byte) (int, error) {
	used := 0
	for {
		line, size := nextLine(b[used:])
		if size == 0 {
			return used, nil
		}
		if bytes.Equal(line, []byte("+OK")) { // to a completion
			used += size
			w.tally.finish(c.now)
			continue
		}
		block, err := workqBlock(b[used:])
		if err != nil {
			return 0, err
		}
		if block.size == 0 {
			return used, nil
		}
		out := w.got(c)
		*out = append(*out, "complete "...)
		*out = append(*out, block.id...)
		*out = append(*out, " 0\r\n\r\n"...)
		w.lease(c)
		used += block.size
	}
}

type workqReply struct {
	id   []byte
	size int // of the whole reply, 0 while it is not complete
}

// workqBlock reads the reply to a lease or a run: a count, a line that ends with the size of the body, the body.
func workqBlock(b []byte) (workqReply, error) {
	count, first := nextLine(b)
	if first == 0 {
		return workqReply{}, nil
	}
	if !bytes.Equal(count, []byte("+OK 1")) {
		return workqReply{}, fmt.Errorf("workq answered with %q", count)
	}
	line, second := nextLine(b[first:])
	if second == 0 {
		return workqReply{}, nil
	}
	bodySize, err := atoi(lastWord(line))
	if err != nil {
		return workqReply{}, err
	}
	size := first + second + bodySize + 2
	if len(b) < size {
		return workqReply{}, nil
	}
	return workqReply{id: word(line, 0), size: size}, nil
}

// ids makes version 4 UUIDs from a random part of this run and the job number.
type ids struct{ prefix [8]byte }

func newIDs() *ids {
	i := &ids{}
	binary.BigEndian.PutUint64(i.prefix[:], rand.Uint64())
	i.prefix[6] = 0x40 | i.prefix[6]&0x0f
	return i
}

func (i *ids) append(b []byte, n int) []byte {
	var tail [8]byte
	binary.BigEndian.PutUint64(tail[:], 0x8<<60|uint64(n))
	b = hex.AppendEncode(b, i.prefix[:4])
	b = append(b, '-')
	b = hex.AppendEncode(b, i.prefix[4:6])
	b = append(b, '-')
	b = hex.AppendEncode(b, i.prefix[6:])
	b = append(b, '-')
	b = hex.AppendEncode(b, tail[:2])
	b = append(b, '-')
	return hex.AppendEncode(b, tail[2:])
}
