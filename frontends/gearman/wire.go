package gearman

import (
	"bytes"
	"encoding/binary"
	"strconv"
)

// A packet, in both directions; all numbers big-endian:
//
//	0        4      8      12
//	├────────┼──────┼──────┼─────────┬─────┬─────────┬───┬───────────────┐
//	│ \0REQ  │ type │ size │ field   │ NUL │ field   │ … │ last field    │
//	└────────┴──────┴──────┴─────────┴─────┴─────────┴───┴───────────────┘
//	                       └───────────────── size bytes ────────────────┘
//
// A message that does not start with NUL is a line of text. LF ends it; a CR before LF is ignored.
const (
	headerBytes  = 12
	requestMagic = "\x00REQ"
	answerMagic  = "\x00RES"

	// maxLineBytes limits a line of text, including its end.
	maxLineBytes = 8 << 10

	// maxFieldsBytes limits the fields of a packet before the workload.
	maxFieldsBytes = 8 << 10
)

// message is one packet or line. Its slices are parts of the input.
type message struct {
	text bool
	line []byte // set for a line of text

	typ  packetType // set for a packet
	args [maxArgs][]byte
}

// syntaxError is the error for a malformed message. lost means that framing is lost, so the connection is closed.
type syntaxError struct {
	text    bool // answered with a line instead of a packet
	code    string
	message string
	lost    bool
}

// Syntax errors, except for missing fields. The first one keeps the connection open.
var (
	errAnswerMagic = &syntaxError{code: "INVALID_MAGIC", message: "Request magic expected"}
	errMagic       = &syntaxError{code: "INVALID_MAGIC", message: "Request magic expected", lost: true}
	errType        = &syntaxError{code: codeCommand, message: "Command not expected", lost: true}
	errTooLarge    = &syntaxError{code: codeTooLarge, message: "Workload too large", lost: true}
	errResult      = &syntaxError{code: codeTooLarge, message: "Result too large", lost: true} // see message.checkSize
	errLine        = &syntaxError{text: true, code: "UNKNOWN_COMMAND", message: "Line+too+long", lost: true}
)

// decode parses the first message of in and returns its length, 0 without an error if more bytes are needed. An error with n >
// 0 does not lose framing. maxBody limits the workload: a larger workload is refused before it is received.
func decode(in []byte, maxBody int, m *message) (n int, err *syntaxError) {
	if len(in) == 0 {
		return 0, nil
	}
	if in[0] != 0 {
		return decodeLine(in, m)
	}
	answer := false
	if have := min(len(in), 4); string(in[:have]) != requestMagic[:have] {
		if string(in[:have]) != answerMagic[:have] {
			return 0, errMagic
		}
		answer = true
	}
	if len(in) < headerBytes {
		return 0, nil
	}
	typ, size := packetType(binary.BigEndian.Uint32(in[4:])), binary.BigEndian.Uint32(in[8:])
	if typ == 0 || typ >= packetTypes {
		return 0, errType
	}
	if over := int(size) - maxBody; over > 0 {
		if err := m.checkSize(typ, in[headerBytes:], over, answer); err != nil {
			return 0, err
		}
	}
	if uint64(len(in)) < headerBytes+uint64(size) {
		return 0, nil
	}
	n = headerBytes + int(size)
	if answer {
		return n, errAnswerMagic
	}
	m.text, m.line, m.typ = false, nil, typ
	if !m.parseFields(in[headerBytes:n]) {
		return 0, &syntaxError{code: codeArguments, message: "Too few arguments for " + layouts[typ].name, lost: true}
	}
	return n, nil
}

// checkSize refuses a packet whose last field exceeds the limit of workloads. over is the number of bytes by which the whole
// payload exceeds it. The size of the last field is known once the fields before it have been received. Each read searches them
// again. That is cheap: they must end within the first over bytes, or the last field does not exceed the limit.
//
// A result that is too large is refused once its job is known. m then holds the type and, as its first argument, the handle; a
// malformed handle is empty.
func (m *message) checkSize(typ packetType, come []byte, over int, answer bool) *syntaxError {
	l, far := &layouts[typ], over > maxFieldsBytes
	if answer || !l.request || l.args == 0 {
		if far {
			return errTooLarge
		}
		return nil
	}
	if !l.result {
		if far || bytes.Count(come[:min(len(come), over-1)], []byte{0}) >= l.args-1 {
			return errTooLarge
		}
		return nil
	}
	window := over - 1
	if far {
		window = maxHandleBytes + 1
	}
	end := bytes.IndexByte(come[:min(len(come), window)], 0)
	if end < 0 && !(far && len(come) >= window) {
		return nil
	}
	m.text, m.line, m.typ, m.args[0] = false, nil, typ, come[:max(end, 0)]
	return errResult
}

// parseFields sets args and reports whether there are enough fields.
func (m *message) parseFields(payload []byte) bool {
	l := &layouts[m.typ]
	if !l.request || l.args == 0 {
		return true
	}
	for i := range l.args - 1 {
		end := bytes.IndexByte(payload, 0)
		if end < 0 {
			return false
		}
		m.args[i], payload = payload[:end], payload[end+1:]
	}
	m.args[l.args-1] = payload
	return true
}

func decodeLine(in []byte, m *message) (int, *syntaxError) {
	end := bytes.IndexByte(in[:min(len(in), maxLineBytes)], '\n')
	if end < 0 {
		if len(in) >= maxLineBytes {
			return 0, errLine
		}
		return 0, nil
	}
	m.text, m.line = true, bytes.TrimSuffix(in[:end], []byte{'\r'})
	return end + 1, nil
}

// cutNUL returns b up to its first NUL: some clients end the last field like a C string.
func cutNUL(b []byte) []byte {
	if end := bytes.IndexByte(b, 0); end >= 0 {
		return b[:end]
	}
	return b
}

// beginPacket appends the header of an answer without its size. endPacket fills in the size; it needs the length that b had
// before.
func beginPacket(b []byte, t packetType) []byte {
	b = append(b, answerMagic...)
	return append(b, 0, 0, byte(t>>8), byte(t), 0, 0, 0, 0)
}

func endPacket(b []byte, start int) []byte {
	binary.BigEndian.PutUint32(b[start+8:], uint32(len(b)-start-headerBytes))
	return b
}

// appendPacket appends an answer with the given fields.
func appendPacket[T string | []byte](b []byte, t packetType, fields ...T) []byte {
	start := len(b)
	b = beginPacket(b, t)
	for i, f := range fields {
		if i > 0 {
			b = append(b, 0)
		}
		b = append(b, f...)
	}
	return endPacket(b, start)
}

// appendField appends a NUL and a field.
func appendField[T string | []byte](b []byte, f T) []byte { return append(append(b, 0), f...) }

// appendNumber appends a NUL and n in decimal.
func appendNumber(b []byte, n uint64) []byte { return strconv.AppendUint(append(b, 0), n, 10) }

// leadingNumber parses a number like C's strtoul, clamped to 32 bits: white space, a plus, digits. Without digits it is 0.
func leadingNumber(b []byte) uint32 {
	b = bytes.TrimPrefix(bytes.TrimLeft(b, " \t\n\v\f\r"), []byte{'+'})
	n := uint64(0)
	for _, c := range b {
		if c < '0' || c > '9' {
			break
		}
		if n = n*10 + uint64(c-'0'); n > 1<<32-1 {
			return 1<<32 - 1
		}
	}
	return uint32(n)
}
