package wire

import (
	"bufio"
	"bytes"
	"strconv"
)

// maxDepth limits the nesting of arrays.
const maxDepth = 8

var crlf = []byte("\r\n")

// ReadRESP reads a value of RESP, as Redis and Faktory reply with it, and returns its bytes: a line, a string with its
// length before it, or an array of values. limit bounds each string, in bytes, and each array, in values. The error is
// ErrFraming or that of the connection.
func ReadRESP(in *bufio.Reader, limit int) ([]byte, error) {
	var value []byte
	for s := (respScan{limit: limit}); ; {
		line, err := ReadLine(in, MaxLine)
		if err != nil {
			return nil, err
		}
		body, err := s.next(line)
		if err != nil {
			return nil, err
		}
		value = append(value, line...)
		if body > 0 {
			text, err := ReadFull(in, body)
			switch {
			case err != nil:
				return nil, err
			case !bytes.HasSuffix(text, crlf):
				return nil, ErrFraming
			}
			value = append(value, text...)
		}
		if s.depth == 0 {
			return value, nil
		}
	}
}

// RESPLength is the length of the first value of RESP in in, in bytes; zero if it is incomplete. limit is that of
// ReadRESP. The error is ErrFraming. It copies nothing, since callers look at a value again whenever more of it has
// arrived.
func RESPLength(in []byte, limit int) (n int, err error) {
	for s := (respScan{limit: limit}); ; {
		end := 1 + bytes.IndexByte(in[n:min(n+MaxLine, len(in))], '\n')
		switch {
		case end == 0 && len(in)-n > MaxLine:
			return 0, ErrFraming
		case end == 0:
			return 0, nil
		}
		body, err := s.next(in[n : n+end])
		if err != nil {
			return 0, err
		}
		n += end + body
		switch {
		case n > len(in):
			return 0, nil
		case body > 0 && !bytes.HasSuffix(in[:n], crlf):
			return 0, ErrFraming
		case s.depth == 0:
			return n, nil
		}
	}
}

// respScan follows a value of RESP from line to line. The zero depth is that of a value that is complete, or not begun.
type respScan struct {
	limit int               // of strings, in bytes, and of arrays, in values
	depth int               // number of open arrays
	left  [maxDepth + 1]int // values that each open array still lacks, from 1
}

// next takes a line with its end. body is how many bytes of a string follow, with their line end.
func (s *respScan) next(line []byte) (body int, err error) {
	head, ends := bytes.CutSuffix(line, crlf)
	if !ends || len(head) == 0 {
		return 0, ErrFraming
	}
	size := 0
	switch head[0] {
	case '+', '-', ':':
	case '$', '*':
		size, err = strconv.Atoi(string(head[1:]))
		if err != nil || size < -1 || size > s.limit { // -1: null
			return 0, ErrFraming
		}
	default:
		return 0, ErrFraming
	}
	s.left[s.depth]--
	switch {
	case head[0] == '$' && size >= 0:
		body = size + len(crlf)
	case head[0] == '*' && size > 0 && s.depth == maxDepth:
		return 0, ErrFraming
	case head[0] == '*' && size > 0:
		s.depth++
		s.left[s.depth] = size
	}
	for s.depth > 0 && s.left[s.depth] == 0 {
		s.depth--
	}
	return body, nil
}

// RESPText is the content of a reply that is not an array; empty for null.
func RESPText(reply []byte) []byte {
	line, rest, _ := bytes.Cut(reply, crlf)
	if len(line) > 0 && line[0] == '$' {
		return bytes.TrimSuffix(rest, crlf)
	}
	return line[min(1, len(line)):]
}

// RESPItems are the values in an array, as parts of reply; none for null. isArray is false for other replies.
func RESPItems(reply []byte) (items [][]byte, isArray bool) {
	if len(reply) == 0 || reply[0] != '*' {
		return nil, false
	}
	_, rest, _ := bytes.Cut(reply, crlf)
	for len(rest) > 0 {
		n, err := RESPLength(rest, len(rest))
		if n == 0 || err != nil {
			return nil, false
		}
		items, rest = append(items, rest[:n:n]), rest[n:]
	}
	return items, true
}

// IsRESPError reports whether a reply is an error.
func IsRESPError(reply []byte) bool { return len(reply) > 0 && reply[0] == '-' }
