package resp

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/tidwall/redcon"
)

// Limits of a command apart from the length of its arguments. A command may be MaxCommandOverhead bytes longer than
// reader.Max.
const (
	maxArgs            = 1 << 20
	maxInline          = 64 << 10
	MaxCommandOverhead = 64 << 10
)

// errShort means that a part of the command has not arrived yet.
var errShort = errors.New("more input needed")

// syntaxError reports input that is not RESP. The connection must be closed.
type syntaxError string

func (e syntaxError) Error() string { return "Protocol error: " + string(e) }

// reader cuts commands from the input of a connection. It remembers its position, so that it scans a long command once
// even if it arrives in many pieces. It is apart from package migrate/wire, which reads any value of RESP, because
// requests are arrays of strings or lines of words only, and what is wrong with them is said in the words of Redis.
type reader struct {
	Max  int // bytes of one argument; a command may be a little longer
	args int // arguments of the current command that are not complete yet; zero: its first line is not
	at   int // start of the next argument
}

// Next returns the arguments of the first command and its length n. The arguments are slices of in. An empty command
// has no arguments.
func (r *reader) Next(in []byte, buf [][]byte) (args [][]byte, n int, err error) {
	if len(in) == 0 {
		return nil, 0, errShort
	}
	if in[0] != '*' {
		return r.inline(in, buf)
	}
	end, err := r.end(in)
	if err != nil {
		return nil, 0, err
	}
	r.args, r.at = 0, 0
	if end == 0 {
		return nil, 0, errShort
	}
	if in[1] == '-' { // a null array
		return nil, end, nil
	}
	complete, args, _, rest, err := redcon.ReadNextCommand(in[:end], buf)
	if err != nil || !complete || len(rest) > 0 {
		return nil, 0, syntaxError("invalid command")
	}
	return args, end, nil
}

// end returns the end of the first command. It checks all lengths before anything is stored.
func (r *reader) end(in []byte) (int, error) {
	if r.at == 0 {
		n, used, err := header(in, '*', "invalid multibulk length")
		if err != nil {
			return 0, err
		}
		if n < -1 || n > maxArgs {
			return 0, syntaxError("invalid multibulk length")
		}
		r.args, r.at = max(n, 0), used
	}
	for r.args > 0 {
		if r.at >= len(in) {
			return 0, errShort
		}
		if in[r.at] != '$' {
			return 0, syntaxError(fmt.Sprintf("expected '$', got '%c'", in[r.at]))
		}
		n, used, err := header(in[r.at:], '$', "invalid bulk length")
		if err != nil {
			return 0, err
		}
		if n < 0 || n > r.Max {
			return 0, syntaxError("invalid bulk length")
		}
		next := r.at + used + n + 2
		if next > r.Max+MaxCommandOverhead {
			return 0, syntaxError("command is too long")
		}
		if next > len(in) {
			return 0, errShort
		}
		if in[next-2] != '\r' || in[next-1] != '\n' {
			return 0, syntaxError("invalid bulk length")
		}
		r.at = next
		r.args--
	}
	return r.at, nil
}

// header reads a line that consists of a mark and a number.
func header(in []byte, mark byte, wrong string) (n, used int, err error) {
	const longest = 16
	end := bytes.IndexByte(in[:min(len(in), longest)], '\n')
	switch {
	case end < 0 && len(in) >= longest:
		return 0, 0, syntaxError(wrong)
	case end < 0:
		return 0, 0, errShort
	case end < 2 || in[end-1] != '\r' || in[0] != mark:
		return 0, 0, syntaxError(wrong)
	}
	n, err = strconv.Atoi(string(in[1 : end-1]))
	if err != nil {
		return 0, 0, syntaxError(wrong)
	}
	return n, end + 1, nil
}

// inline reads a command that is a plain line of words.
func (r *reader) inline(in []byte, buf [][]byte) (args [][]byte, n int, err error) {
	end := bytes.IndexByte(in[:min(len(in), maxInline)], '\n')
	switch {
	case end < 0 && len(in) >= maxInline:
		return nil, 0, syntaxError("too big inline request")
	case end < 0:
		return nil, 0, errShort
	}
	line := bytes.TrimRight(in[:end], "\r")
	if len(line) == 0 {
		return nil, end + 1, nil
	}
	if in[0] == '$' { // not a line of words
		return nil, 0, syntaxError("unexpected '$'")
	}
	complete, args, _, _, err := redcon.ReadNextCommand(in[:end+1], buf)
	if err != nil || !complete {
		return nil, 0, syntaxError("unbalanced quotes in request")
	}
	return args, end + 1, nil
}
