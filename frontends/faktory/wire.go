package faktory

import (
	"bytes"
	"errors"
	"fmt"
)

// What lineReader.next may say instead of giving a line.
var (
	errShort   = errors.New("more input needed")
	errTooLong = errors.New("line too long")
)

// lineReader cuts request lines from the input of one connection. It keeps none of the bytes, only how far it has looked:
// a long line that comes in many pieces is not searched from its start each time.
type lineReader struct {
	max      int  // bytes of a line, its end not counted
	seen     int  // bytes in front of the unread input that hold no line end
	skipping bool // the rest of a line that was too long is being dropped
}

// next returns the first line of in without its end, and how many bytes of in are used up. With errShort there is no
// whole line yet (n may be positive all the same: input that was dropped). errTooLong comes once for each line beyond
// the limit, as soon as that is known; the rest of it is dropped by the calls that follow.
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
	if len(line) > r.max {
		return nil, end + 1, errTooLong
	}
	return line, end + 1, nil
}

// partial handles input without a line end.
func (r *lineReader) partial(in []byte) ([]byte, int, error) {
	if r.skipping {
		return nil, len(in), errShort
	}
	if len(in) > r.max+1 { // one more: the last byte may be the first of CRLF
		r.seen, r.skipping = 0, true
		return nil, len(in), errTooLong
	}
	r.seen = len(in)
	return nil, 0, errShort
}

// splitVerb cuts a line at its first space. bare: there was none, which is something else than an empty argument.
func splitVerb(line []byte) (verb, arg []byte, bare bool) {
	verb, arg, found := bytes.Cut(line, []byte{' '})
	return verb, arg, !found
}

// maxNames is how many names one request may hold.
const maxNames = 1000

// tooManyNames is what is said of more.
var tooManyNames = fmt.Sprintf("more than %d names", maxNames)

// words cuts an argument at its spaces; runs of spaces count as one. ok is false if there are more than maxNames.
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
