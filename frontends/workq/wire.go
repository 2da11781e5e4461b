package workq

import (
	"bytes"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// request is one command line cut into tokens, which lie in the input and die with it. Reused from line to line.
type request struct {
	word     []byte
	args     [][]byte // tokens that are no flags
	flags    []flag
	badFlags bool // an empty key, an empty value or a key given twice
	body     []byte
}

// flag is a token -key=value.
type flag struct{ key, value []byte }

// cutLine finds the line at the front of in, of which the first from bytes are known to hold no line end. It returns the
// line without its end and how many bytes it takes with it; n is 0 when the line is not complete. A bare line ended in
// LF alone.
func cutLine(in []byte, from int) (line []byte, n int, bare bool) {
	at := bytes.IndexByte(in[from:], '\n')
	if at < 0 {
		return nil, 0, false
	}
	at += from
	if at == 0 || in[at-1] != '\r' {
		return in[:at], at + 1, true
	}
	return in[:at-1], at + 1, false
}

// bodyEnd says what stands where the CRLF behind a body must be.
type bodyEnd uint8

// More bytes are needed to tell; CRLF; something else; something that cuts the next CRLF in half.
const (
	endShort bodyEnd = iota
	endGood
	endWrong
	endLost
)

// cutBodyEnd reads the end of a body and says how many bytes it takes. A wrong end takes two bytes, as the reference
// does: what a client has sent beyond them is the next line. A LF takes itself only: the body was a byte short of what
// was declared, and the next line begins behind it. When the body was one byte too long the CRLF behind it falls apart
// and no line can be found any more.
func cutBodyEnd(in []byte) (int, bodyEnd) {
	switch {
	case len(in) == 0:
		return 0, endShort
	case in[0] == '\n':
		return 1, endWrong
	case len(in) == 1:
		return 0, endShort
	case in[0] == '\r' && in[1] == '\n':
		return 2, endGood
	case in[1] != '\r':
		return 2, endWrong
	case len(in) == 2:
		return 0, endShort
	case in[2] == '\n':
		return 3, endLost
	}
	return 2, endWrong
}

// bodyEndAt is cutBodyEnd behind the first end bytes of in, as far as they are there.
func bodyEndAt(in []byte, end int) (int, bodyEnd) {
	if len(in) <= end {
		return 0, endShort
	}
	return cutBodyEnd(in[end:])
}

// manyFlags is how many flags are searched for a repeated key one by one; more need an index.
const manyFlags = 16

// parse cuts line into tokens. Tokens are parted by blanks; a blank in front leaves the command word empty, and so does a
// flag there: its syntax is looked at like that of any other.
func (r *request) parse(line []byte) {
	r.args, r.flags, r.badFlags, r.body = r.args[:0], r.flags[:0], false, nil
	if r.word, line = nextToken(line); len(r.word) > 0 && r.word[0] == '-' {
		if at := bytes.IndexByte(r.word, '='); at >= 0 {
			r.addFlag(flag{key: r.word[1:at], value: r.word[at+1:]}, nil)
			r.word = nil
		}
	}
	var seen map[string]bool
	for {
		line = bytes.TrimLeft(line, " ")
		if len(line) == 0 {
			return
		}
		var token []byte
		token, line = nextToken(line)
		at := bytes.IndexByte(token, '=')
		if token[0] != '-' || at < 0 {
			r.args = append(r.args, token)
			continue
		}
		if len(r.flags) == manyFlags {
			seen = make(map[string]bool)
			for _, g := range r.flags {
				seen[string(g.key)] = true
			}
		}
		r.addFlag(flag{key: token[1:at], value: token[at+1:]}, seen)
	}
}

// addFlag takes a flag and looks whether it can be one: nothing before or behind the first equals sign, or another one
// at once, is an error, and so is a key that came before; seen is the index of keys once there are many.
func (r *request) addFlag(f flag, seen map[string]bool) {
	if len(f.key) == 0 || len(f.value) == 0 || f.value[0] == '=' || r.given(f.key, seen) {
		r.badFlags = true
	}
	if seen != nil {
		seen[string(f.key)] = true
	}
	r.flags = append(r.flags, f)
}

// nextToken cuts line at its first blank.
func nextToken(line []byte) (token, rest []byte) {
	if at := bytes.IndexByte(line, ' '); at >= 0 {
		return line[:at], line[at:]
	}
	return line, nil
}

// given reports whether a flag with that key came before; seen is the index once there are many.
func (r *request) given(key []byte, seen map[string]bool) bool {
	if seen != nil {
		return seen[string(key)]
	}
	_, ok := r.flag(string(key))
	return ok
}

// flag finds the value of a flag.
func (r *request) flag(key string) (value []byte, ok bool) {
	for _, f := range r.flags {
		if string(f.key) == key {
			return f.value, true
		}
	}
	return nil, false
}

// parseSize reads the size of a body: a decimal integer, signed if need be. Not ok: it is no number at all.
func parseSize(b []byte) (size int64, ok bool) {
	negative := len(b) > 0 && b[0] == '-'
	if negative || len(b) > 0 && b[0] == '+' {
		b = b[1:]
	}
	n, ok := parseUint(b, 1<<63-1)
	if negative {
		return -int64(n), ok //nolint:gosec // bounded above
	}
	return int64(n), ok //nolint:gosec // bounded above
}

// parseUint reads digits, and nothing but digits, of a number up to limit.
func parseUint(b []byte, limit uint64) (uint64, bool) {
	if len(b) == 0 {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		digit := uint64(c - '0')
		if c < '0' || c > '9' || n > (limit-digit)/10 {
			return 0, false
		}
		n = n*10 + digit
	}
	return n, true
}

// parsePriority reads a signed 32-bit number.
func parsePriority(b []byte) (int32, bool) {
	n, ok := parseSize(b)
	return int32(n), ok && n == int64(int32(n)) //nolint:gosec // compared
}

// timeLayout is how instants are read and written; reading takes a fraction of a second too.
const timeLayout = "2006-01-02T15:04:05Z"

// parseTime reads an instant in UTC.
func parseTime(b []byte) (time.Time, bool) {
	t, err := time.Parse(timeLayout, string(b))
	return t, err == nil
}

// parseID reads a UUID as canonical text, in upper case, without hyphens, in braces or as a URN. The forms around the
// digits are checked here: uuid.ParseBytes takes any first and last byte for braces.
func parseID(b []byte) (id uuid.UUID, ok bool) {
	if rest, urn := bytes.CutPrefix(b, []byte("urn:uuid:")); urn {
		b = rest
	} else if len(b) > 2 && b[0] == '{' && b[len(b)-1] == '}' {
		b = b[1 : len(b)-1]
	}
	if len(b) != 32 && len(b) != 36 {
		return uuid.Nil, false
	}
	id, err := uuid.ParseBytes(b)
	return id, err == nil
}

// validID reports whether an id is one that a job may have: version 4, RFC 4122 variant.
func validID(id uuid.UUID) bool { return id.Version() == 4 && id.Variant() == uuid.RFC4122 }

// validName reports whether name is one that a queue may have: 1 to 255 letters, digits, underscores, points, hyphens.
func validName(name []byte) bool {
	if len(name) == 0 || len(name) > 255 {
		return false
	}
	for _, c := range name {
		if !nameBytes[c] {
			return false
		}
	}
	return true
}

// nameBytes are the bytes that a name may hold.
var nameBytes = func() (ok [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") {
		ok[c] = true
	}
	return ok
}()

// validWord reports whether text can be a flag's value of ours: 1 to 255 bytes without control characters and without a
// second equals sign. Blanks cannot be in a token anyway.
func validWord(text []byte) bool {
	if len(text) == 0 || len(text) > 255 {
		return false
	}
	for _, c := range text {
		if c < ' ' || c == 0x7f || c == '=' {
			return false
		}
	}
	return true
}

// crlf ends every line.
const crlf = "\r\n"

// done is the answer that has nothing more to say.
const okLine = "+OK" + crlf

// appendOK writes the first line of an answer with count parts.
func appendOK(b []byte, count int) []byte {
	b = strconv.AppendInt(append(b, "+OK "...), int64(count), 10)
	return append(b, crlf...)
}

// appendBlob writes bytes and the end that every body has.
func appendBlob(b, blob []byte) []byte { return append(append(b, blob...), crlf...) }

// AppendOutcome writes the answer to run and result.
func appendOutcome(b []byte, id string, success bool, result []byte) []byte {
	b = append(append(appendOK(b, 1), id...), ' ')
	if success {
		b = append(b, '1', ' ')
	} else {
		b = append(b, '0', ' ')
	}
	b = strconv.AppendInt(b, int64(len(result)), 10)
	return appendBlob(append(b, crlf...), result)
}

// appendLease writes the answer to lease.
func appendLease(b []byte, id, name string, ttr time.Duration, payload []byte) []byte {
	b = append(append(appendOK(b, 1), id...), ' ')
	b = append(appendName(b, name), ' ')
	b = append(strconv.AppendInt(b, ttr.Milliseconds(), 10), ' ')
	b = strconv.AppendInt(b, int64(len(payload)), 10)
	return appendBlob(append(b, crlf...), payload)
}

// appendKey writes "key " in front of a value.
func appendKey(b []byte, key string) []byte { return append(append(b, key...), ' ') }

// appendNumber writes the line "key value".
func appendNumber(b []byte, key string, value int64) []byte {
	return append(strconv.AppendInt(appendKey(b, key), value, 10), crlf...)
}

// appendTime writes the line "key value" with an instant.
func appendTime(b []byte, key string, value time.Time) []byte {
	return append(value.UTC().AppendFormat(appendKey(b, key), timeLayout), crlf...)
}

// appendName writes the name of a queue. One that another protocol made may hold what would break the line: such bytes
// are written as % and two digits.
func appendName(b []byte, name string) []byte {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c == 0x7f {
			b = append(b, '%')
			b = hex.AppendEncode(b, []byte{c})
			continue
		}
		b = append(b, name[i])
	}
	return b
}
