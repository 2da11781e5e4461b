package wire

import (
	"bufio"
	"bytes"

	"broker/frontends/gearman/packet"
)

// Text is the type of a line of Gearman's text protocol, and of its reply.
const Text packet.Type = 0

// Packet is a packet of Gearman, or a line or lines of its text protocol, as it is on the wire.
type Packet []byte

// ReadPacket reads a packet with this magic, or a line of text. limit bounds the data of a packet, in bytes.
func ReadPacket(in *bufio.Reader, magic string, limit int) (Packet, error) {
	first, err := in.Peek(1)
	if err != nil {
		return nil, err
	}
	if first[0] != 0 {
		return ReadLine(in, MaxLine)
	}
	head, err := in.Peek(packet.HeaderBytes)
	if err != nil {
		return nil, err
	}
	_, size, ok := packet.Header(head, magic)
	if !ok || int64(size) > int64(limit) {
		return nil, ErrFraming
	}
	return ReadFull(in, packet.HeaderBytes+int(size))
}

// Type is the type of the packet; Text for a line.
func (p Packet) Type() packet.Type {
	if p[0] != 0 {
		return Text
	}
	typ, _, _ := packet.Header(p, packet.AnswerMagic)
	return typ
}

// Data is what follows the header: arguments that NULs separate.
func (p Packet) Data() []byte { return p[packet.HeaderBytes:] }

// Arg is an argument of the packet: the bytes between two NULs; nil if it has fewer.
func (p Packet) Arg(n int) []byte {
	rest := p.Data()
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
