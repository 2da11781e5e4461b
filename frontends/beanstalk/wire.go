package beanstalk

import (
	"bytes"
	"math"
	"strconv"

	"broker/frontends"
)

const crlf = "\r\n"

// maxLine is the longest command line, with its end.
const maxLine = 224

// maxName is the longest name of a tube.
const maxName = 200

// cutLine returns the first line of in without its end, and the number of used bytes; zero if the line is incomplete.
// The first scanned bytes contain no line end.
func cutLine(in []byte, scanned int) (line []byte, used int) {
	from := max(scanned-1, 0) // a CR may be the last scanned byte
	at := bytes.Index(in[from:], []byte(crlf))
	if at < 0 {
		return nil, 0
	}
	at += from
	return in[:at], at + len(crlf)
}

// validLine reports whether a line contains no NUL, CR or LF.
func validLine(line []byte) bool { return !bytes.ContainsAny(line, "\r\n\x00") }

// args reads the arguments of a command line. After an error bad is set and all reads return zero.
type args struct {
	rest []byte // starts with the space before the next argument
	bad  bool
}

// number reads a number of at most limit.
func (a *args) number(limit uint64) uint64 {
	digits := bytes.TrimLeft(a.rest, " ")
	if len(digits) == len(a.rest) {
		a.bad = true
		return 0
	}
	end := bytes.IndexByte(digits, ' ')
	if end < 0 {
		end = len(digits)
	}
	n, ok := frontends.ParseUint(digits[:end], limit)
	a.bad = a.bad || !ok
	a.rest = digits[end:]
	return n
}

// small reads a number of 32 bits.
func (a *args) small() uint64 { return a.number(math.MaxUint32) }

// spacedName is name behind one or more spaces, which beanstalkd accepts in pause-tube only.
func (a *args) spacedName() []byte {
	if n := len(a.rest) - len(bytes.TrimLeft(a.rest, " ")); n > 1 {
		a.rest = a.rest[n-1:]
	}
	return a.name()
}

// name reads the name of a tube.
func (a *args) name() []byte {
	if len(a.rest) == 0 {
		a.bad = true
		return nil
	}
	name := a.rest[1:]
	if end := bytes.IndexByte(name, ' '); end >= 0 {
		name = name[:end]
	}
	a.bad = a.bad || !validName(name)
	a.rest = a.rest[1+len(name):]
	return name
}

// end reports whether all arguments were valid and there are no more.
func (a *args) end() bool { return !a.bad && len(a.rest) == 0 }

// validName reports whether a tube may have this name.
func validName(name []byte) bool {
	if len(name) == 0 || len(name) > maxName || name[0] == '-' {
		return false
	}
	for _, c := range name {
		if !nameBytes[c] {
			return false
		}
	}
	return true
}

// nameBytes are the bytes that a name may have.
var nameBytes = func() (set [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+/;.$_()") {
		set[c] = true
	}
	return set
}()

// bodySize is the size of the body after an invalid put line. ok is false if the line does not contain the size.
func bodySize(rest []byte) (size uint64, ok bool) {
	fields := bytes.FieldsFunc(rest, func(r rune) bool { return r == ' ' })
	if len(fields) < 4 {
		return 0, false
	}
	return frontends.ParseUint(fields[3], math.MaxUint32)
}

// appendJob writes a reply with a job.
func appendJob(b []byte, word string, id uint64, body []byte) []byte {
	b = append(append(b, word...), ' ')
	b = append(strconv.AppendUint(b, id, 10), ' ')
	b = append(strconv.AppendInt(b, int64(len(body)), 10), crlf...)
	return append(append(b, body...), crlf...)
}

// appendNumber writes a reply with a number.
func appendNumber(b []byte, word string, n uint64) []byte {
	b = append(append(b, word...), ' ')
	return append(strconv.AppendUint(b, n, 10), crlf...)
}

// appendYAML writes a reply with a YAML document.
func appendYAML(b, document []byte) []byte {
	b = append(b, "OK "...)
	b = append(strconv.AppendInt(b, int64(len(document)), 10), crlf...)
	return append(append(b, document...), crlf...)
}
