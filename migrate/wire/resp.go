package wire

import (
	"bufio"
	"bytes"
	"strconv"
)

// maxDepth limits the nesting of arrays.
const maxDepth = 8

// ReadRESP reads a reply of Redis or Faktory as it is on the wire: a line, a string with its length before it, or an
// array of replies. limit bounds each string, in bytes.
func ReadRESP(in *bufio.Reader, limit int) ([]byte, error) { return appendRESP(nil, in, limit, 0) }

func appendRESP(b []byte, in *bufio.Reader, limit, depth int) ([]byte, error) {
	line, err := ReadLine(in, MaxLine)
	if err != nil {
		return nil, err
	}
	b = append(b, line...)
	if line[0] != '$' && line[0] != '*' {
		return b, nil
	}
	size, err := strconv.Atoi(string(bytes.TrimRight(line[1:], "\r\n")))
	switch {
	case err != nil || depth > maxDepth, line[0] == '$' && size > limit:
		return nil, ErrFraming
	case size < 0:
		return b, nil // null
	case line[0] == '$':
		body, err := ReadFull(in, size+len("\r\n"))
		return append(b, body...), err
	}
	for range size {
		if b, err = appendRESP(b, in, limit, depth+1); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// RESPText is the content of a reply that is not an array; empty for null.
func RESPText(reply []byte) []byte {
	line, rest, _ := bytes.Cut(reply, []byte("\r\n"))
	if len(line) > 0 && line[0] == '$' {
		return bytes.TrimSuffix(rest, []byte("\r\n"))
	}
	return line[min(1, len(line)):]
}

// RESPItems are the replies in an array; none for null. isArray is false for other replies.
func RESPItems(reply []byte) (items [][]byte, isArray bool) {
	if len(reply) == 0 || reply[0] != '*' {
		return nil, false
	}
	_, rest, _ := bytes.Cut(reply, []byte("\n"))
	in := bufio.NewReader(bytes.NewReader(rest))
	for len(rest) > 0 {
		item, err := appendRESP(nil, in, len(rest), 0)
		if err != nil {
			return nil, false
		}
		items, rest = append(items, item), rest[len(item):]
	}
	return items, true
}

// IsRESPError reports whether a reply is an error.
func IsRESPError(reply []byte) bool { return len(reply) > 0 && reply[0] == '-' }
