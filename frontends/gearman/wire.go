package gearman

import (
	"bytes"
	"strconv"

	"broker/frontends/gearman/packet"
)

// A message that starts with NUL is a packet; any other message is a line of text. LF ends it; a CR before LF is
// ignored.
const (
	// maxLineBytes limits a line of text, including its end.
	maxLineBytes = 8 << 10

	// maxFieldsBytes limits the fields of a packet before the workload.
	maxFieldsBytes = 8 << 10

	maxUniqueBytes   = 64
	maxClientIDBytes = 127
	maxProgressBytes = 4 << 10 // both numbers of a WORK_STATUS
)

// message is one packet or line. Its slices are parts of the input.
type message struct {
	text bool
	line []byte // set for a line of text

	typ  packet.Type // set for a packet
	args [packet.MaxFields][]byte
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

// decode parses the first message of in and returns its length, 0 without an error if more bytes are needed. An error
// with n > 0 does not lose framing. maxBody limits the workload: a larger workload is refused before it is received.
func decode(in []byte, maxBody int, m *message) (n int, err *syntaxError) {
	if len(in) == 0 {
		return 0, nil
	}
	if in[0] != 0 {
		return decodeLine(in, m)
	}
	answer := false
	if have := min(len(in), 4); string(in[:have]) != packet.RequestMagic[:have] {
		if string(in[:have]) != packet.AnswerMagic[:have] {
			return 0, errMagic
		}
		answer = true
	}
	if len(in) < packet.HeaderBytes {
		return 0, nil
	}
	typ, size, _ := packet.Header(in, packet.RequestMagic) // answer says which magic it is
	if typ == 0 || typ >= packet.NumTypes {
		return 0, errType
	}
	if over := int(size) - maxBody; over > 0 {
		if err := m.checkSize(typ, in[packet.HeaderBytes:], over, answer); err != nil {
			return 0, err
		}
	}
	if uint64(len(in)) < packet.HeaderBytes+uint64(size) {
		return 0, nil
	}
	n = packet.HeaderBytes + int(size)
	if answer {
		return n, errAnswerMagic
	}
	m.text, m.line, m.typ = false, nil, typ
	if !m.parseFields(in[packet.HeaderBytes:n]) {
		return 0, &syntaxError{code: codeArguments, message: "Too few arguments for " + typ.Layout().Name, lost: true}
	}
	return n, nil
}

// checkSize refuses a packet whose last field exceeds the limit of workloads. over is the number of bytes by which the
// whole payload exceeds it. The size of the last field is known once the fields before it have been received. Each read
// searches them again. That is cheap: they must end within the first over bytes, or the last field does not exceed the
// limit.
//
// A result that is too large is refused once its job is known. m then holds the type and, as its first argument, the
// handle; a malformed handle is empty.
func (m *message) checkSize(typ packet.Type, come []byte, over int, answer bool) *syntaxError {
	l, far := typ.Layout(), over > maxFieldsBytes
	if answer || !l.Request || l.Fields == 0 {
		if far {
			return errTooLarge
		}
		return nil
	}
	if !l.Result {
		if far || bytes.Count(come[:min(len(come), over-1)], []byte{0}) >= l.Fields-1 {
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
	l := m.typ.Layout()
	if !l.Request || l.Fields == 0 {
		return true
	}
	for i := range l.Fields - 1 {
		end := bytes.IndexByte(payload, 0)
		if end < 0 {
			return false
		}
		m.args[i], payload = payload[:end], payload[end+1:]
	}
	m.args[l.Fields-1] = payload
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

// appendPacket appends an answer with the given fields.
func appendPacket[T string | []byte](b []byte, t packet.Type, fields ...T) []byte {
	return packet.Append(b, packet.AnswerMagic, t, fields...)
}

// appendField appends a NUL and a field.
func appendField[T string | []byte](b []byte, f T) []byte { return append(append(b, 0), f...) }

// appendNumber appends a NUL and n in decimal.
func appendNumber(b []byte, n uint64) []byte { return strconv.AppendUint(append(b, 0), n, 10) }

// leadingNumber parses a number like C's strtoul, clamped to 32 bits: white space, a plus, digits. Without digits it is
// 0.
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
