package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
)

// Packets of Gearman's protocol.
const (
	canDo, preSleep, noop, jobCreated    = 1, 4, 6, 8
	grabJob, noJob, jobAssign            = 9, 10, 11
	workStatus, workComplete, workFail   = 12, 13, 14
	submitBackground, errorPacket        = 18, 19
	setClientID, submitHigh, gearmanHead = 22, 32, 12
)

// gearman is a connection of a Gearman client or worker.
type gearman struct {
	conn net.Conn
	in   *bufio.Reader
}

func dialGearman(ctx context.Context, address string) (*gearman, error) {
	conn, err := dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return &gearman{conn, bufio.NewReader(conn)}, nil
}

func (g *gearman) close() { _ = g.conn.Close() } // nothing is left to say

// send sends a packet with its arguments.
func (g *gearman) send(kind uint32, args ...string) error {
	var body []byte
	for i, a := range args {
		if i > 0 {
			body = append(body, 0)
		}
		body = append(body, a...)
	}
	packet := append([]byte("\x00REQ"), make([]byte, 8)...)
	binary.BigEndian.PutUint32(packet[4:], kind)
	binary.BigEndian.PutUint32(packet[8:], uint32(len(body)))
	_, err := g.conn.Write(append(packet, body...))
	return err
}

// receive reads a packet.
func (g *gearman) receive() (kind uint32, args [][]byte, err error) {
	var head [gearmanHead]byte
	if _, err := io.ReadFull(g.in, head[:]); err != nil {
		return 0, nil, err
	}
	kind = binary.BigEndian.Uint32(head[4:])
	body := make([]byte, binary.BigEndian.Uint32(head[8:]))
	if _, err := io.ReadFull(g.in, body); err != nil {
		return 0, nil, err
	}
	if kind == errorPacket {
		return kind, nil, fmt.Errorf("gearman: %q", body)
	}
	return kind, bytes.SplitN(body, []byte{0}, 3), nil
}

// submit submits a background job.
func (g *gearman) submit(kind uint32, function, unique, data string) error {
	if err := g.send(kind, function, unique, data); err != nil {
		return err
	}
	got, _, err := g.receive()
	if err == nil && got != jobCreated {
		return fmt.Errorf("gearman: packet %d instead of JOB_CREATED", got)
	}
	return err
}

// grab waits for a job and returns its handle.
func (g *gearman) grab() (handle string, err error) {
	if err := g.send(grabJob); err != nil {
		return "", err
	}
	for {
		kind, args, err := g.receive()
		if err != nil {
			return "", err
		}
		switch kind {
		case jobAssign:
			return string(args[0]), nil
		case noJob:
			err = g.send(preSleep)
		case noop:
			err = g.send(grabJob)
		}
		if err != nil {
			return "", err
		}
	}
}
