package demo

import (
	"bufio"
	"context"
	"fmt"
	"net"

	"broker/frontends/gearman/packet"
	"broker/migrate/wire"
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
func (g *gearman) send(kind packet.Type, args ...string) error {
	_, err := g.conn.Write(packet.Append(nil, packet.RequestMagic, kind, args...))
	return err
}

// receive reads a packet.
func (g *gearman) receive() (wire.Packet, error) {
	p, err := wire.ReadPacket(g.in, packet.AnswerMagic, wire.MaxMessage)
	if err == nil && p.Type() == packet.Error {
		err = fmt.Errorf("gearman: %q", p.Data())
	}
	return p, err
}

// submit submits a background job.
func (g *gearman) submit(kind packet.Type, function, unique, data string) error {
	if err := g.send(kind, function, unique, data); err != nil {
		return err
	}
	p, err := g.receive()
	if err == nil && p.Type() != packet.JobCreated {
		return fmt.Errorf("gearman: packet %d instead of JOB_CREATED", p.Type())
	}
	return err
}

// grab waits for a job and returns its handle.
func (g *gearman) grab() (handle string, err error) {
	if err := g.send(packet.GrabJob); err != nil {
		return "", err
	}
	for {
		p, err := g.receive()
		if err != nil {
			return "", err
		}
		switch p.Type() { //nolint:exhaustive // a worker that asks for jobs gets no other packets
		case packet.JobAssign:
			return string(p.Arg(0)), nil
		case packet.NoJob:
			err = g.send(packet.PreSleep)
		case packet.Noop:
			err = g.send(packet.GrabJob)
		}
		if err != nil {
			return "", err
		}
	}
}
