package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
)

// conveyorName is the group of Conveyor, whose clients use a Redis otherwise.
const conveyorName = "conveyor"

// conveyor adds, pops and closes jobs with the commands that Conveyor's client and worker send. A worker sends those of
// a close together, with the next BRPOP; its own client sends one after the other, which costs the same on both sides
// of the comparison.
type conveyor struct{}

func (conveyor) greet() func(io.ReadWriter) error { return nil }

func (conveyor) caller(*tally) session { return nil }

// conveyorID is the uuid of a job; conveyorIDAt is where it starts in the encoded job.
const (
	conveyorIDSize = 36
	conveyorIDAt   = 2
)

func (conveyor) producer(t *tally, inFlight int) session {
	prefix := fmt.Sprintf("%08x-0000-4000-8000-", rand.Uint32())
	return &conveyorProducer{newPipeline(t, inFlight, func(b []byte, n int) []byte {
		job := conveyorJob(fmt.Sprintf("%s%012x", prefix, n), t.queue(n), t.body)
		return appendCommand(b, "LPUSH", "conv:queue:"+t.queue(n), job)
	})}
}

// conveyorJob is the protobuf message: uuid, type, queue, payload.
func conveyorJob(id, queue, payload string) string {
	b := make([]byte, 0, len(id)+2*len(queue)+len(payload)+16)
	for i, field := range []string{id, queue, queue, payload} {
		b = append(b, byte(i+1)<<3|2)
		n := len(field)
		for ; n >= 0x80; n >>= 7 {
			b = append(b, byte(n)|0x80)
		}
		b = append(append(b, byte(n)), field...)
	}
	return string(b)
}

// conveyorProducer reads the length of the list after each submission.
type conveyorProducer struct{ pipeline }

func (p *conveyorProducer) feed(c *conn, b []byte) (int, error) {
	used := 0
	for {
		line, size := nextLine(b[used:])
		if size == 0 {
			p.fill(c)
			return used, nil
		}
		if line[0] != ':' {
			return 0, fmt.Errorf("%q in place of a number", line)
		}
		used += size
		p.answered(c)
	}
}

func (conveyor) worker(t *tally) session { return &conveyorWorker{tally: t} }

// conveyorWorker pops, confirms and closes one job at a time.
type conveyorWorker struct {
	tally   *tally
	replies int // to the commands of a close that are still to come
}

func (w *conveyorWorker) begin(c *conn) { w.pop(c) }

func (w *conveyorWorker) pop(c *conn) {
	c.out = appendCommand(c.out, "BRPOP", "conv:queue:"+w.tally.queue(0), "0")
}

func (w *conveyorWorker) feed(c *conn, b []byte) (int, error) {
	used := 0
	for {
		if w.replies > 0 {
			_, size := nextLine(b[used:])
			if size == 0 {
				return used, nil
			}
			if b[used] == '-' {
				return 0, fmt.Errorf("a worker was answered with %q", b[used:used+size])
			}
			used += size
			if w.replies--; w.replies == 0 {
				w.tally.finish(c.now)
			}
			continue
		}
		raw, size, err := poppedJob(b[used:])
		if err != nil || size == 0 {
			return used, err
		}
		used += size
		w.close(c, raw)
		w.pop(c)
	}
}

// poppedJob is the job in a reply to BRPOP: an array of the key and the job.
func poppedJob(b []byte) (raw []byte, size int, err error) {
	line, head := nextLine(b)
	switch {
	case head == 0:
		return nil, 0, nil
	case !bytes.Equal(line, []byte("*2")):
		return nil, 0, fmt.Errorf("BRPOP was answered with %q", line)
	}
	_, key, err := nextBulk(b[head:])
	if err != nil || key == 0 {
		return nil, 0, err
	}
	raw, job, err := nextBulk(b[head+key:])
	if err != nil || job == 0 {
		return nil, 0, err
	}
	if len(raw) < conveyorIDAt+conveyorIDSize {
		return nil, 0, fmt.Errorf("%q is not a job", raw)
	}
	return raw, head + key + job, nil
}

// close confirms a job and closes it. Each reply is one line: there are neither children nor heirs.
func (w *conveyorWorker) close(c *conn, raw []byte) {
	id := string(raw[conveyorIDAt : conveyorIDAt+conveyorIDSize])
	key := "conv:job:" + id
	for _, command := range [][]string{
		{"SET", key, string(raw)},
		{"SADD", "conv:worker:active:bench", id},
		{"SADD", "conv:jobs:active", id},
		{"SREM", "conv:worker:active:bench", id},
		{"RPOP", key + ":children"},
		{"SCARD", key + ":active"},
		{"RPOP", key + ":onComplete"},
		{"SREM", "conv:jobs:active", id},
		{"INCR", "conv:hist:success:2030-01-01_00:00"},
		{"EXPIRE", "conv:hist:success:2030-01-01_00:00", "3600"},
		{"INCR", "conv:j_hist:bench:success:2030-01-01_00:00"},
		{"EXPIRE", "conv:j_hist:bench:success:2030-01-01_00:00", "3600"},
		{"DEL", key},
	} {
		c.out = appendCommand(c.out, command...)
		w.replies++
	}
}
