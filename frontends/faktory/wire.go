package faktory

import (
	"bytes"
	"errors"
	"fmt"
)

// errShort is returned by lineReader.next while there is no whole line.
var errShort = errors.New("more input needed")

// lineTooLong is the error for a line beyond its limit, in bytes.
type lineTooLong int

func (limit lineTooLong) Error() string {
	return fmt.Sprintf("line is longer than %d bytes", int(limit))
}

// maxCommandLine bounds request lines that carry no job, in bytes.
const maxCommandLine = 1 << 20

// jobVerbs start the lines that carry jobs or results.
var jobVerbs = [][]byte{[]byte("PUSH "), []byte("PUSHB "), []byte("ACK ")}

// lineReader cuts request lines from the input of one connection. It keeps none of the bytes, only how far it has searched,
// so that a long line that arrives in many pieces is searched once.
type lineReader struct {
	max      int  // bytes of a line without its end
	jobMax   int  // the same for a line that starts with one of jobVerbs, if greater
	seen     int  // bytes at the start of the unread input that hold no line end
	skipping bool // the rest of a line that is too long is being dropped
}

// next returns the first line of in without its end, and how many bytes of in are used up. With errShort there is no
// whole line yet; n may still be positive: input that was dropped. A lineTooLong error is returned once for each line
// beyond its limit, as soon as that is known; later calls drop the rest of the line.
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
	if limit := r.limit(in); len(in) > limit+1 { // one more: the last byte may be the first of CRLF
		r.seen, r.skipping = 0, true
		return nil, len(in), lineTooLong(limit)
	}
	r.seen = len(in)
	return nil, 0, errShort
}

// limit is the longest that a line with this start may be.
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

// maxNames is how many names one request may contain.
const maxNames = 1000

// tooManyNames is the error for more.
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
