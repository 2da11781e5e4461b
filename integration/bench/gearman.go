package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"

	"broker/integration/gearmanclient"
)

const (
	gearmanHeader = 12
	// gearmanFunctions is the number of functions up to which every worker registers all; above it, each registers a
	// part.
	gearmanFunctions = 1000
)

type gearman struct{}

func (gearman) greet() func(io.ReadWriter) error { return nil }

func (gearman) producer(t *tally, inFlight int) session {
	kind := gearmanclient.SubmitJobBg
	if t.due != 0 {
		kind = gearmanclient.SubmitJobEpoch
	}
	return newGearmanProducer(t, inFlight, kind, gearmanclient.JobCreated)
}

func (gearman) caller(t *tally) session {
	return newGearmanProducer(t, 1, gearmanclient.SubmitJob, gearmanclient.WorkComplete)
}

func (gearman) worker(t *tally) session { return &gearmanWorker{leaser: newLeaser(t)} }

// gearmanProducer submits jobs; a job is answered by JOB_CREATED (background) or WORK_COMPLETE (foreground).
type gearmanProducer struct {
	pipeline

	last gearmanclient.Type
}

func newGearmanProducer(t *tally, inFlight int, submit, last gearmanclient.Type) *gearmanProducer {
	p := &gearmanProducer{last: last}
	p.pipeline = newPipeline(t, inFlight, func(b []byte, n int) []byte { return appendSubmit(b, submit, &t.shape, n) })
	return p
}

// appendSubmit appends the submit packet of job n.
func appendSubmit(b []byte, kind gearmanclient.Type, s *shape, n int) []byte {
	b = append(b, 0, 'R', 'E', 'Q')
	b = binary.BigEndian.AppendUint32(b, uint32(kind))
	sizeAt := len(b)
	b = append(b, 0, 0, 0, 0)
	b = append(append(b, s.queue(n)...), 0)
	if s.keyed {
		b = s.appendKey(b, n)
	}
	b = append(b, 0)
	if s.due != 0 {
		b = append(strconv.AppendInt(b, s.due, 10), 0)
	}
	b = append(b, s.body...)
	binary.BigEndian.PutUint32(b[sizeAt:], uint32(len(b)-sizeAt-4))
	return b
}

func (p *gearmanProducer) feed(c *conn, b []byte) (int, error) {
	used := 0
	for {
		kind, packet := nextGearman(b[used:])
		if packet == nil {
			break
		}
		used += len(packet)
		switch kind {
		case p.last:
			p.answered(c)
		case gearmanclient.JobCreated:
		default:
			return 0, fmt.Errorf("gearman producer got packet %d %q", kind, packet)
		}
	}
	p.fill(c)
	return used, nil
}

// gearmanWorker grabs jobs, and sends each completion with the next grab in one write.
type gearmanWorker struct {
	leaser

	grabs  int // that have not been answered
	asleep bool
}

var (
	gearmanGrab  = gearmanclient.Append(nil, gearmanclient.GrabJobUniq)
	gearmanSleep = gearmanclient.Append(nil, gearmanclient.PreSleep)
	gearmanEcho  = gearmanclient.Append(nil, gearmanclient.EchoReq, "done")
)

// open registers the functions before the measurement starts, since there may be many.
func (w *gearmanWorker) open(rw io.ReadWriter) error {
	step := 1
	if len(w.tally.queues) > gearmanFunctions {
		step = w.tally.clients
	}
	var hello []byte
	for i := w.number % step; i < len(w.tally.queues); i += step {
		hello = gearmanclient.Append(hello, gearmanclient.CanDo, w.tally.queues[i])
	}
	if _, err := rw.Write(append(hello, gearmanEcho...)); err != nil {
		return err
	}
	_, err := io.ReadFull(rw, make([]byte, len(gearmanEcho))) // the answer is as long as the request
	return err
}

func (w *gearmanWorker) begin(c *conn) { w.grabMany(c) }

// grabMany requests as many jobs as a worker may hold.
func (w *gearmanWorker) grabMany(c *conn) {
	for w.grabs = 0; w.grabs < w.tally.inHand; w.grabs++ {
		w.grab(c)
	}
}

// grab requests a job. Only when all jobs are already waiting is the last lease known in advance: otherwise a worker
// that stops might be the only one able to run a later job.
func (w *gearmanWorker) grab(c *conn) {
	if _, more := w.next(); !more && w.tally.hold {
		if w.held != nil {
			w.release(c)
			c.out = append(c.out, gearmanEcho...)
		}
		return
	}
	w.ask(c)
	c.out = append(c.out, gearmanGrab...)
}

func (w *gearmanWorker) feed(c *conn, b []byte) (int, error) {
	used := 0
	for {
		kind, packet := nextGearman(b[used:])
		if packet == nil {
			return used, nil
		}
		used += len(packet)
		switch kind {
		case gearmanclient.JobAssignUniq:
			handle, _, found := bytes.Cut(packet[gearmanHeader:], []byte{0})
			if !found {
				return 0, fmt.Errorf("assignment %q", packet)
			}
			out := w.got(c)
			*out = appendComplete(*out, handle)
			if !w.tally.hold {
				w.tally.finish(c.now)
			}
			w.grab(c)
		case gearmanclient.EchoRes: // what was held is finished
			for ; w.sent > 0; w.sent-- {
				w.tally.finish(c.now)
			}
		case gearmanclient.NoJob:
			w.asks.stop(c.now)
			if w.grabs--; w.grabs == 0 {
				w.asleep = true
				c.out = append(c.out, gearmanSleep...)
			}
		case gearmanclient.Noop:
			if w.asleep { // one that came before the answer to a grab calls for nothing
				w.asleep = false
				w.grabMany(c)
			}
		default:
			return 0, fmt.Errorf("gearman worker got packet %d %q", kind, packet)
		}
	}
}

func appendComplete(b, handle []byte) []byte {
	b = append(b, 0, 'R', 'E', 'Q')
	b = binary.BigEndian.AppendUint32(b, uint32(gearmanclient.WorkComplete))
	b = binary.BigEndian.AppendUint32(b, uint32(len(handle)+1))
	b = append(b, handle...)
	return append(b, 0)
}

// nextGearman returns the first packet of b, or nil if it is incomplete.
func nextGearman(b []byte) (gearmanclient.Type, []byte) {
	if len(b) < gearmanHeader {
		return 0, nil
	}
	size := gearmanHeader + int(binary.BigEndian.Uint32(b[8:]))
	if len(b) < size {
		return 0, nil
	}
	return gearmanclient.Type(binary.BigEndian.Uint32(b[4:])), b[:size]
}
