package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
)

const workqName = "bench"

type workq struct{}

func (workq) greet() func(io.ReadWriter) error { return nil }

func (workq) producer(t *tally, inFlight int) session {
	ids := newIDs()
	tail := fmt.Sprintf(" %s 600000 3600000 %d\r\n%s\r\n", workqName, len(body), body)
	return &lineProducer{
		pipeline: newPipeline(t, inFlight, func(b []byte, n int) []byte {
			b = append(b, "add "...)
			b = ids.append(b, n)
			return append(b, tail...)
		}),
		want: []byte("+OK"),
	}
}

func (workq) caller(t *tally) session {
	ids := newIDs()
	tail := fmt.Sprintf(" %s 600000 60000 %d\r\n%s\r\n", workqName, len(body), body)
	return &workqCaller{newPipeline(t, 1, func(b []byte, n int) []byte {
		b = append(b, "run "...)
		b = ids.append(b, n)
		return append(b, tail...)
	})}
}

func (workq) worker(t *tally) session { return &workqWorker{tally: t} }

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

// workqWorker leases, and sends the completion and the next lease in one write.
type workqWorker struct {
	tally      *tally
	completing bool // the next reply is that of a completion
}

var workqLease = []byte("lease " + workqName + " 3600000\r\n")

func (w *workqWorker) begin(c *conn) { c.out = append(c.out, workqLease...) }

func (w *workqWorker) feed(c *conn, b []byte) (int, error) {
	used := 0
	for {
		if w.completing {
			line, size := nextLine(b[used:])
			if size == 0 {
				return used, nil
			}
			if !bytes.Equal(line, []byte("+OK")) {
				return 0, fmt.Errorf("workq completion answered with %q", line)
			}
			used += size
			w.completing = false
			w.tally.finish(c.now)
		}
		block, err := workqBlock(b[used:])
		if err != nil {
			return 0, err
		}
		if block.size == 0 {
			return used, nil
		}
		c.out = append(c.out, "complete "...)
		c.out = append(c.out, block.id...)
		c.out = append(c.out, " 0\r\n\r\n"...)
		c.out = append(c.out, workqLease...)
		w.completing = true
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

// ids makes version 4 UUIDs out of a random part of this run and the number of the job.
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
