package workq

import (
	"bytes"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/google/uuid"

	"broker/core"
	"broker/frontends"
)

// request is a parsed command line. Its slices are parts of the input.
type request struct {
	word     []byte
	args     [][]byte // without flags
	flags    []flag
	badFlags bool // an empty key, an empty value or a repeated key
	body     []byte
}

// flag is a token -key=value.
type flag struct{ key, value []byte }

// cutLine returns the first line of in without its end, and its length n with the end; n is 0 if the line is not
// complete. The first from bytes are known to have no line end. A bare line ends in LF alone.
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

// bodyEnd is what follows a body.
type bodyEnd uint8

// endShort: more bytes are needed. endGood: CRLF. endWrong: something else. endLost: a part of the next CRLF.
const (
	endShort bodyEnd = iota
	endGood
	endWrong
	endLost
)

// cutBodyEnd parses the end of a body and returns its length. A wrong end has two bytes, as in the reference server,
// and the next line follows. LF alone has one: the body was one byte shorter than announced, and the next line follows.
// If the body is one byte too long, its CRLF is split and framing is lost.
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

// manyFlags is the number of flags above which an index finds repeated keys.
const manyFlags = 16

// parse splits line into tokens at spaces. A leading space or flag leaves the command word empty. The syntax of a
// leading flag is checked too.
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

// addFlag adds a flag. Empty keys and values, a second equals sign right after the first, and repeated keys are errors.
// seen is the index of keys if there are many.
func (r *request) addFlag(f flag, seen map[string]bool) {
	if len(f.key) == 0 || len(f.value) == 0 || f.value[0] == '=' || r.given(f.key, seen) {
		r.badFlags = true
	}
	if seen != nil {
		seen[string(f.key)] = true
	}
	r.flags = append(r.flags, f)
}

// nextToken splits line at its first space.
func nextToken(line []byte) (token, rest []byte) {
	if at := bytes.IndexByte(line, ' '); at >= 0 {
		return line[:at], line[at:]
	}
	return line, nil
}

// given reports whether there is a flag with that key; seen is the index of keys if there are many.
func (r *request) given(key []byte, seen map[string]bool) bool {
	if seen != nil {
		return seen[string(key)]
	}
	_, ok := r.flag(string(key))
	return ok
}

// flag returns the value of a flag.
func (r *request) flag(key string) (value []byte, ok bool) {
	for _, f := range r.flags {
		if string(f.key) == key {
			return f.value, true
		}
	}
	return nil, false
}

// parseSize parses the size of a body: a decimal integer with an optional sign. Not ok: it is not a number.
func parseSize(b []byte) (size int64, ok bool) {
	negative := len(b) > 0 && b[0] == '-'
	if negative || len(b) > 0 && b[0] == '+' {
		b = b[1:]
	}
	n, ok := frontends.ParseUint(b, 1<<63-1)
	if negative {
		return -int64(n), ok
	}
	return int64(n), ok
}

// parsePriority parses a signed 32-bit number.
func parsePriority(b []byte) (int32, bool) {
	n, ok := parseSize(b)
	return int32(n), ok && n == int64(int32(n))
}

// timeLayout is the format of instants; a parsed instant may have a fraction of a second.
const timeLayout = "2006-01-02T15:04:05Z"

// parseTime parses an instant in UTC.
func parseTime(b []byte) (time.Time, bool) {
	t, err := time.Parse(timeLayout, string(b))
	return t, err == nil
}

// parseID parses a UUID in canonical form, in upper case, without hyphens, in braces or as a URN. Braces and URN are
// checked here, since uuid.ParseBytes accepts any bytes for braces.
func parseID(b []byte) (id jobID, ok bool) {
	if core.IsUUIDv4(b) { // as nearly all are
		return jobID{text: string(b), valid: true}, true
	}
	if rest, urn := bytes.CutPrefix(b, []byte("urn:uuid:")); urn {
		b = rest
	} else if len(b) > 2 && b[0] == '{' && b[len(b)-1] == '}' {
		b = b[1 : len(b)-1]
	}
	if len(b) != 32 && len(b) != 36 {
		return jobID{}, false
	}
	u, err := uuid.ParseBytes(b)
	if err != nil {
		return jobID{}, false
	}
	return jobID{text: u.String(), valid: u.Version() == 4 && u.Variant() == uuid.RFC4122}, true
}

// jobID is an id that a client has sent.
type jobID struct {
	text  string // the canonical form
	valid bool   // a job may have it: version 4, RFC 4122 variant
}

// validName reports whether a queue may have this name: 1 to 255 letters, digits, underscores, dots and hyphens.
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

// nameBytes are the bytes allowed in a name.
var nameBytes = func() (ok [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") {
		ok[c] = true
	}
	return ok
}()

// validWord reports whether text may be the value of an extension flag: 1 to 255 bytes without control characters and
// equals signs. A token has no spaces.
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

// okLine is the answer of a command without a result.
const okLine = "+OK" + crlf

// appendOK appends the first line of an answer with count parts.
func appendOK(b []byte, count int) []byte {
	b = strconv.AppendInt(append(b, "+OK "...), int64(count), 10)
	return append(b, crlf...)
}

// appendBlob appends a body with its CRLF.
func appendBlob(b, blob []byte) []byte { return append(append(b, blob...), crlf...) }

// appendOutcome appends the answer to run and result.
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

// appendLease appends the answer to lease.
func appendLease(b []byte, id, name string, ttr time.Duration, payload []byte) []byte {
	b = append(append(appendOK(b, 1), id...), ' ')
	b = append(appendName(b, name), ' ')
	b = append(strconv.AppendInt(b, ttr.Milliseconds(), 10), ' ')
	b = strconv.AppendInt(b, int64(len(payload)), 10)
	return appendBlob(append(b, crlf...), payload)
}

// appendKey appends "key ".
func appendKey(b []byte, key string) []byte { return append(append(b, key...), ' ') }

// appendNumber appends the line "key value".
func appendNumber(b []byte, key string, value int64) []byte {
	return append(strconv.AppendInt(appendKey(b, key), value, 10), crlf...)
}

// appendTime appends the line "key value" with an instant.
func appendTime(b []byte, key string, value time.Time) []byte {
	return append(value.UTC().AppendFormat(appendKey(b, key), timeLayout), crlf...)
}

// appendName appends the name of a queue. Names from other protocols may contain spaces and control characters, which
// are written as % and two hex digits.
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
