package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"broker/integration/gearmanclient"
)

const (
	gearmanHeader   = 12
	gearmanFunction = "bench"
)

type gearman struct{}

func (gearman) greet() func(io.ReadWriter) error { return nil }

func (gearman) producer(t *tally, inFlight int) session {
	return newGearmanProducer(t, inFlight, gearmanclient.SubmitJobBg, gearmanclient.JobCreated)
}

func (gearman) caller(t *tally) session {
	return newGearmanProducer(t, 1, gearmanclient.SubmitJob, gearmanclient.WorkComplete)
}

func (gearman) worker(t *tally) session { return &gearmanWorker{tally: t} }

// gearmanProducer submits and counts a job as answered at the packet that its kind of job ends with.
type gearmanProducer struct {
	pipeline

	last gearmanclient.Type
}

func newGearmanProducer(t *tally, inFlight int, submit, last gearmanclient.Type) *gearmanProducer {
	request := gearmanclient.Append(nil, submit, gearmanFunction, "", body)
	p := &gearmanProducer{last: last}
	p.pipeline = newPipeline(t, inFlight, func(b []byte, _ int) []byte { return append(b, request...) })
	return p
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

// gearmanWorker grabs, and sends the completion and the next grab in one write.
type gearmanWorker struct {
	tally  *tally
	grabs  int // that have not been answered
	asleep bool
}

var (
	gearmanCanDo = gearmanclient.Append(nil, gearmanclient.CanDo, gearmanFunction)
	gearmanGrab  = gearmanclient.Append(nil, gearmanclient.GrabJobUniq)
	gearmanSleep = gearmanclient.Append(nil, gearmanclient.PreSleep)
)

func (w *gearmanWorker) begin(c *conn) {
	c.out = append(c.out, gearmanCanDo...)
	w.grab(c)
}

// grab asks for as many jobs as a worker may have in hand.
func (w *gearmanWorker) grab(c *conn) {
	for w.grabs = 0; w.grabs < inHand; w.grabs++ {
		c.out = append(c.out, gearmanGrab...)
	}
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
			c.out = appendComplete(c.out, handle)
			c.out = append(c.out, gearmanGrab...)
			w.tally.finish(c.now)
		case gearmanclient.NoJob:
			if w.grabs--; w.grabs == 0 {
				w.asleep = true
				c.out = append(c.out, gearmanSleep...)
			}
		case gearmanclient.Noop:
			if w.asleep { // one that came before the answer to a grab calls for nothing
				w.asleep = false
				w.grab(c)
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

// nextGearman is the first packet of b, nil while it is not complete.
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
