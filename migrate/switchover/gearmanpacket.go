package switchover

import (
	"bufio"
	"bytes"
	"errors"
	"strings"

	"broker/frontends/gearman/packet"
	"broker/migrate/wire"
)

// newGearmanPacket makes a packet of a server.
func newGearmanPacket(typ packet.Type, args ...string) wire.Packet {
	return packet.Append(nil, packet.AnswerMagic, typ, args...)
}

// Handles of both gearmand and the broker begin with H. Clients see the broker's handles with an h instead.
const (
	serverHandle = 'H'
	brokerHandle = 'h'
)

// ofBroker reports whether a client's packet names a job of the broker.
func ofBroker(p wire.Packet) bool {
	return len(p) > packet.HeaderBytes && p[packet.HeaderBytes] == brokerHandle
}

// restoreHandle restores the broker's handle in a client's packet.
func restoreHandle(p wire.Packet) { p[packet.HeaderBytes] = serverHandle }

// showHandle changes the handle in a packet of the broker to the handle that clients see.
func showHandle(p wire.Packet) error {
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

// readGearmanReply reads a packet of a server, or the text that replies to a command.
func readGearmanReply(in *bufio.Reader, many func() bool) (wire.Packet, error) {
	p, err := wire.ReadPacket(in, packet.AnswerMagic, wire.MaxMessage)
	if err != nil || p.Type() != wire.Text || bytes.HasPrefix(p, []byte("ERR")) || !many() {
		return p, err
	}
	for line := []byte(p); string(bytes.TrimRight(line, "\r\n")) != "."; p = append(p, line...) {
		if line, err = wire.ReadLine(in, wire.MaxLine); err != nil || len(p) > wire.MaxMessage {
			return nil, errors.Join(err, wire.ErrFraming)
		}
	}
	return p, nil
}

// manyLines reports whether the reply to a command ends with a line that has a dot.
func manyLines(p wire.Packet) bool {
	word, _, _ := strings.Cut(strings.TrimRight(string(p), "\r\n"), " ")
	switch word {
	case "status", "workers", "prioritystatus", "show":
		return true
	}
	return false
}
