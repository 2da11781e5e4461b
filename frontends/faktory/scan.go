package faktory

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds nested arrays and objects, as in encoding/json.
const maxDepth = 10_000

// scanner reads JSON strictly (RFC 8259) and converts nothing. Its methods return false or nil at the first wrong byte;
// pos is undefined after that. The caller must have checked that the text is valid UTF-8.
type scanner struct {
	data []byte
	pos  int
}

// space skips white space and returns the next byte, 0 at the end.
func (s *scanner) space() byte {
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// atEnd reports whether only white space is left.
func (s *scanner) atEnd() bool {
	s.space()
	return s.pos == len(s.data)
}

// take skips white space and the byte c.
func (s *scanner) take(c byte) bool {
	if s.space() != c {
		return false
	}
	s.pos++
	return true
}

// value skips a value of any type and returns its bytes; nil if it is malformed. depth is the depth of the container
// around it.
func (s *scanner) value(depth int) []byte {
	c := s.space()
	start := s.pos
	ok := false
	switch {
	case c == '"':
		ok = s.text()
	case c == '{', c == '[':
		ok = s.container(depth+1, nil)
	case c == 't':
		ok = s.word("true")
	case c == 'f':
		ok = s.word("false")
	case c == 'n':
		ok = s.word("null")
	case c == '-' || c >= '0' && c <= '9':
		ok = s.number()
	}
	if !ok {
		return nil
	}
	return s.data[start:s.pos:s.pos]
}

// container reads the array or object at pos, and calls visit, if there is one, for each element. name is the raw name
// of a member, with its quotes; nil in an array. If visit returns false, container stops and returns false.
func (s *scanner) container(depth int, visit func(name, value []byte) bool) bool {
	if depth > maxDepth {
		return false
	}
	end := s.data[s.pos] + 2 // ] or }
	s.pos++
	if s.take(end) {
		return true
	}
	for {
		var name []byte
		if end == '}' {
			if s.space() != '"' {
				return false
			}
			start := s.pos
			if !s.text() {
				return false
			}
			if name = s.data[start:s.pos]; !s.take(':') {
				return false
			}
		}
		value := s.value(depth)
		if value == nil || visit != nil && !visit(name, value) {
			return false
		}
		if s.take(end) {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

// text skips a string, whose opening quote is at pos.
func (s *scanner) text() bool {
	for i := s.pos + 1; i < len(s.data); i++ {
		switch c := s.data[i]; {
		case c == '"':
			s.pos = i + 1
			return true
		case c < ' ':
			return false
		case c == '\\':
			i++
			if i >= len(s.data) {
				return false
			}
			switch s.data[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if _, ok := hex4(s.data[i+1:]); !ok {
					return false
				}
				i += 4
			default:
				return false
			}
		}
	}
	return false
}

// word skips a literal.
func (s *scanner) word(w string) bool {
	if !bytes.HasPrefix(s.data[s.pos:], []byte(w)) {
		return false
	}
	s.pos += len(w)
	return true
}

// number skips a number.
func (s *scanner) number() bool {
	if s.peek() == '-' {
		s.pos++
	}
	switch {
	case s.peek() == '0':
		s.pos++
	case !s.digits():
		return false
	}
	if s.peek() == '.' {
		s.pos++
		if !s.digits() {
			return false
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		return s.digits()
	}
	return true
}

// digits skips one digit or more.
func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.data) && s.data[s.pos] >= '0' && s.data[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > start
}

// peek is the byte at pos, 0 at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

// members calls visit with the decoded name and the raw value of each member of an object. If visit returns false, it
// stops and returns false. depth is the depth of the container around the object.
func (s *scanner) members(depth int, visit func(name, value []byte) bool) bool {
	return s.space() == '{' &&
		s.container(depth+1, func(name, value []byte) bool { return visit(decodeString(name), value) })
}

// elements is members for an array.
func (s *scanner) elements(depth int, visit func(value []byte) bool) bool {
	return s.space() == '[' && s.container(depth+1, func(_, value []byte) bool { return visit(value) })
}

// decodeString decodes a valid JSON string with its quotes. The result is part of raw if there are no escapes. Lone
// surrogates become U+FFFD.
func decodeString(raw []byte) []byte {
	raw = raw[1 : len(raw)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++
		switch raw[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, _ := hex4(raw[i+1:])
			i += 4
			if utf16.IsSurrogate(r) {
				low := rune(-1)
				if rest := raw[i+1:]; len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
					low, _ = hex4(rest[2:])
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
		default: // a quote, slash or backslash
			out = append(out, raw[i])
		}
	}
	return out
}

// hex4 reads four hexadecimal digits.
func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// integer reads a number without fraction and exponent that fits into 64 bits.
func integer(raw []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return n, err == nil && raw[0] != '+'
}

const hexDigits = "0123456789abcdef"

// appendQuoted appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func appendQuoted[T string | []byte](b []byte, s T) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))])); r != utf8.RuneError ||
				size > 1 {
				i += size
				continue
			}
		}
		b = append(b, s[start:i]...)
		b = appendEscaped(b, c)
		i += size
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

// appendEscaped appends a byte that needs an escape in a JSON string.
func appendEscaped(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	if c < ' ' {
		return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
	}
	return append(b, "\ufffd"...)
}

// appendCompact appends a valid JSON text without the white space between its tokens. b may share its memory with raw.
func appendCompact(b, raw []byte) []byte {
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; c {
		case ' ', '\t', '\r', '\n':
		case '"':
			s := scanner{data: raw, pos: i}
			s.text() // the text is valid, so it ends
			b = append(b, raw[i:s.pos]...)
			i = s.pos - 1
		default:
			b = append(b, c)
		}
	}
	return b
}
