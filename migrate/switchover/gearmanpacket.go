package switchover

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
)

// gearmanType is the kind of a packet, with its number on the wire.
type gearmanType uint32

const (
	gearmanText         gearmanType = 0 // a line of the text protocol, and its reply
	gearmanCanDo        gearmanType = 1
	gearmanCantDo       gearmanType = 2
	gearmanReset        gearmanType = 3
	gearmanPreSleep     gearmanType = 4
	gearmanNoop         gearmanType = 6
	gearmanSubmit       gearmanType = 7
	gearmanCreated      gearmanType = 8
	gearmanGrab         gearmanType = 9
	gearmanNoJob        gearmanType = 10
	gearmanAssign       gearmanType = 11
	gearmanStatus       gearmanType = 12
	gearmanComplete     gearmanType = 13
	gearmanFail         gearmanType = 14
	gearmanGetStatus    gearmanType = 15
	gearmanEcho         gearmanType = 16
	gearmanSubmitBg     gearmanType = 18
	gearmanError        gearmanType = 19
	gearmanStatusRes    gearmanType = 20
	gearmanSubmitHigh   gearmanType = 21
	gearmanClientID     gearmanType = 22
	gearmanCanDoTimeout gearmanType = 23
	gearmanAllYours     gearmanType = 24
	gearmanException    gearmanType = 25
	gearmanOption       gearmanType = 26
	gearmanData         gearmanType = 28
	gearmanWarning      gearmanType = 29
	gearmanGrabUniq     gearmanType = 30
	gearmanAssignUniq   gearmanType = 31
	gearmanSubmitHighBg gearmanType = 32
	gearmanSubmitLow    gearmanType = 33
	gearmanSubmitLowBg  gearmanType = 34
	gearmanSubmitSched  gearmanType = 35
	gearmanSubmitEpoch  gearmanType = 36
	gearmanReduce       gearmanType = 37
	gearmanReduceBg     gearmanType = 38
	gearmanGrabAll      gearmanType = 39
	gearmanAssignAll    gearmanType = 40
	gearmanGetUnique    gearmanType = 41
	gearmanUniqueRes    gearmanType = 42
)

const gearmanHeader = 12

// gearmanPacket is a packet, or a line or lines of the text protocol, as it is on the wire.
type gearmanPacket []byte

// newGearmanPacket makes a packet of a server.
func newGearmanPacket(typ gearmanType, args ...string) gearmanPacket {
	data := strings.Join(args, "\x00")
	p := binary.BigEndian.AppendUint32(append(make([]byte, 0, gearmanHeader+len(data)), "\x00RES"...), uint32(typ))
	p = binary.BigEndian.AppendUint32(p, uint32(len(data))) //nolint:gosec // bounded by maxMessage
	return append(p, data...)
}

func (p gearmanPacket) typ() gearmanType {
	if p[0] != 0 {
		return gearmanText
	}
	return gearmanType(binary.BigEndian.Uint32(p[4:]))
}

// arg is an argument of the packet: the bytes between two NUL.
func (p gearmanPacket) arg(n int) []byte {
	rest := p[gearmanHeader:]
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
	return len(p) > gearmanHeader && p[gearmanHeader] == brokerHandle
}

// restoreHandle restores the broker's handle in a client's packet.
func (p gearmanPacket) restoreHandle() { p[gearmanHeader] = serverHandle }

// showHandle changes the handle in a packet of the broker to the handle that clients see.
func (p gearmanPacket) showHandle() error {
	if len(p) == gearmanHeader || p[gearmanHeader] != serverHandle {
		return errors.New("the broker's handles do not begin with H: set gearman.handle_prefix")
	}
	p[gearmanHeader] = brokerHandle
	return nil
}

// foreground reports whether the client waits for the result of the submission.
func (t gearmanType) foreground() bool {
	switch t { //nolint:exhaustive // the others are not submissions, or have no waiting client
	case gearmanSubmit, gearmanSubmitHigh, gearmanSubmitLow, gearmanReduce:
		return true
	}
	return false
}

// errGearman is returned for bytes that are not Gearman's.
var errGearman = errors.New("not of the protocol")

// readGearman reads a packet with this magic, or a line of text.
func readGearman(in *bufio.Reader, magic string) (gearmanPacket, error) {
	first, err := in.Peek(1)
	if err != nil {
		return nil, err
	}
	if first[0] != 0 {
		return readLine(in)
	}
	head, err := in.Peek(gearmanHeader)
	if err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[8:])
	if string(head[:4]) != magic || size > maxMessage {
		return nil, errGearman
	}
	return readFull(in, gearmanHeader+int(size))
}

// readFull reads n bytes. Memory grows with the received bytes, not with n.
func readFull(in *bufio.Reader, n int) ([]byte, error) {
	const step = 1 << 20
	p := make([]byte, 0, min(n, step))
	for len(p) < n {
		at := len(p)
		p = append(p, make([]byte, min(n-at, max(step, at)))...)
		if _, err := io.ReadFull(in, p[at:]); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// maxLine bounds a line of text.
const maxLine = 64 << 10

// readLine reads up to the end of a line.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(line) > maxLine:
			return nil, errGearman
		}
	}
}

// readGearmanReply reads a packet of a server, or the text that replies to a command.
func readGearmanReply(in *bufio.Reader, many func() bool) (gearmanPacket, error) {
	p, err := readGearman(in, "\x00RES")
	if err != nil || p.typ() != gearmanText || bytes.HasPrefix(p, []byte("ERR")) || !many() {
		return p, err
	}
	for line := []byte(p); string(bytes.TrimRight(line, "\r\n")) != "."; p = append(p, line...) {
		if line, err = readLine(in); err != nil || len(p) > maxMessage {
			return nil, errors.Join(err, errGearman)
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
