package switchover

import (
	"bufio"
	"bytes"
	"errors"
	"strings"

	"broker/frontends/gearman/packet"
)

// gearmanText is the type of a line of the text protocol, and of its reply.
const gearmanText packet.Type = 0

// gearmanPacket is a packet, or a line or lines of the text protocol, as it is on the wire.
type gearmanPacket []byte

// newGearmanPacket makes a packet of a server.
func newGearmanPacket(typ packet.Type, args ...string) gearmanPacket {
	return packet.Append(nil, packet.AnswerMagic, typ, args...)
}

func (p gearmanPacket) typ() packet.Type {
	if p[0] != 0 {
		return gearmanText
	}
	typ, _, _ := packet.Header(p, packet.AnswerMagic)
	return typ
}

// arg is an argument of the packet: the bytes between two NUL.
func (p gearmanPacket) arg(n int) []byte {
	rest := p[packet.HeaderBytes:]
	for range n {
		at := bytes.IndexByte(rest, 0)
		if at < 0 {
			return nil
		}
		rest = rest[at+1:]
	}
	if at := bytes.IndexByte(rest, 0); at >= 0 {
		rest = rest[:at]
	}
	return rest
}

// Handles of both gearmand and the broker begin with H. Clients see the broker's handles with an h instead.
const (
	serverHandle = 'H'
	brokerHandle = 'h'
)

// ofBroker reports whether a client's packet names a job of the broker.
func (p gearmanPacket) ofBroker() bool {
	return len(p) > packet.HeaderBytes && p[packet.HeaderBytes] == brokerHandle
}

// restoreHandle restores the broker's handle in a client's packet.
func (p gearmanPacket) restoreHandle() { p[packet.HeaderBytes] = serverHandle }

// showHandle changes the handle in a packet of the broker to the handle that clients see.
func (p gearmanPacket) showHandle() error {
	if len(p) == packet.HeaderBytes || p[packet.HeaderBytes] != serverHandle {
		return errors.New("the broker's handles do not begin with H: set gearman.handle_prefix")
	}
	p[packet.HeaderBytes] = brokerHandle
	return nil
}

// foreground reports whether the client waits for the result of the submission.
func foreground(t packet.Type) bool {
	switch t { //nolint:exhaustive // the others are not submissions, or have no waiting client
	case packet.SubmitJob, packet.SubmitJobHigh, packet.SubmitJobLow, packet.SubmitReduceJob:
		return true
	}
	return false
}

// readGearman reads a packet with this magic, or a line of text.
func readGearman(in *bufio.Reader, magic string) (gearmanPacket, error) {
	first, err := in.Peek(1)
	if err != nil {
		return nil, err
	}
	if first[0] != 0 {
		return readLine(in, maxLine)
	}
	head, err := in.Peek(packet.HeaderBytes)
	if err != nil {
		return nil, err
	}
	_, size, ok := packet.Header(head, magic)
	if !ok || size > maxMessage {
		return nil, errFraming
	}
	return readFull(in, packet.HeaderBytes+int(size))
}

// readGearmanReply reads a packet of a server, or the text that replies to a command.
func readGearmanReply(in *bufio.Reader, many func() bool) (gearmanPacket, error) {
	p, err := readGearman(in, packet.AnswerMagic)
	if err != nil || p.typ() != gearmanText || bytes.HasPrefix(p, []byte("ERR")) || !many() {
		return p, err
	}
	for line := []byte(p); string(bytes.TrimRight(line, "\r\n")) != "."; p = append(p, line...) {
		if line, err = readLine(in, maxLine); err != nil || len(p) > maxMessage {
			return nil, errors.Join(err, errFraming)
		}
	}
	return p, nil
}

// manyLines reports whether the reply to a command ends with a line that has a dot.
func (p gearmanPacket) manyLines() bool {
	word, _, _ := strings.Cut(strings.TrimRight(string(p), "\r\n"), " ")
	switch word {
	case "status", "workers", "prioritystatus", "show":
		return true
	}
	return false
}
