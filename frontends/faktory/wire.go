package faktory

import (
	"bytes"
	"errors"
	"fmt"
)

// errShort means that the input contains no whole line yet.
var errShort = errors.New("more input needed")

// lineTooLong is the error for a line beyond its limit, in bytes.
type lineTooLong int

func (limit lineTooLong) Error() string {
	return fmt.Sprintf("line is longer than %d bytes", int(limit))
}

// maxCommandLine limits request lines without a job, in bytes.
const maxCommandLine = 1 << 20

// jobVerbs start the lines that contain jobs or results.
var jobVerbs = [][]byte{[]byte("PUSH "), []byte("PUSHB "), []byte("ACK ")}

// lineReader cuts request lines from the input of one connection. It keeps no input, only its position, so that it
// searches a long line once even if the line arrives in many pieces.
type lineReader struct {
	max      int  // maximum bytes of a line without its end
	jobMax   int  // the same for a line that starts with one of jobVerbs, if greater
	seen     int  // bytes at the start of the unread input that hold no line end
	skipping bool // dropping the rest of a line that is too long
}

// next returns the first line of in without its end, and the number n of used bytes. errShort means that there is no
// whole line yet; n then counts dropped input. next returns lineTooLong once for each line above its limit, as early as
// possible. Later calls drop the rest of the line.
func (r *lineReader) next(in []byte) (line []byte, n int, err error) {
	end := bytes.IndexByte(in[min(r.seen, len(in)):], '\n')
	if end < 0 {
		return r.partial(in)
	}
	end += r.seen
	r.seen = 0
	if r.skipping {
		r.skipping = false
		line, n, err = r.next(in[end+1:])
		return line, n + end + 1, err
	}
	line = in[:end]
	if len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	if limit := r.limit(line); len(line) > limit {
		return nil, end + 1, lineTooLong(limit)
	}
	return line, end + 1, nil
}

// partial is next for input without a line end.
func (r *lineReader) partial(in []byte) ([]byte, int, error) {
	if r.skipping {
		return nil, len(in), errShort
	}
	if limit := r.limit(in); len(in) > limit+1 { // +1: the last byte may be the CR of CRLF
		r.seen, r.skipping = 0, true
		return nil, len(in), lineTooLong(limit)
	}
	r.seen = len(in)
	return nil, 0, errShort
}

// limit is the maximum length of a line with this start.
func (r *lineReader) limit(line []byte) int {
	if len(line) <= r.max {
		return r.max
	}
	for _, verb := range jobVerbs {
		if bytes.HasPrefix(line, verb) {
			return max(r.max, r.jobMax)
		}
	}
	return r.max
}

// splitVerb cuts a line at its first space. bare means that there is none; an empty argument is not bare.
func splitVerb(line []byte) (verb, arg []byte, bare bool) {
	verb, arg, found := bytes.Cut(line, []byte{' '})
	return verb, arg, !found
}

// maxNames is the maximum number of names in one request.
const maxNames = 1000

// tooManyNames is the error for more than maxNames names.
var tooManyNames = fmt.Sprintf("more than %d names", maxNames)

// words splits an argument at its spaces. ok is false if there are more than maxNames words.
func words(arg []byte) (out []string, ok bool) {
	for len(arg) > 0 {
		var w []byte
		w, arg, _ = bytes.Cut(arg, []byte{' '})
		if len(w) == 0 {
			continue
		}
		if len(out) == maxNames {
			return nil, false
		}
		out = append(out, string(w))
	}
	return out, true
}
