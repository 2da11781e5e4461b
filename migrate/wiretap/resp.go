package wiretap

import (
	"strconv"
	"strings"
)

// maxDepth limits the nesting of arrays.
const maxDepth = 8

// respLength is the length of the first RESP value in in; zero if it is incomplete.
func respLength(in []byte) (n int, err error) { return respValue(in, 0) }

func respValue(in []byte, depth int) (n int, err error) {
	line, n := cutLine(in, "\r\n")
	switch {
	case n == 0 && len(in) > maxMessage, depth > maxDepth:
		return 0, errFraming
	case n == 0:
		return 0, nil
	case line == "":
		return 0, errFraming
	}
	switch line[0] {
	case '+', '-', ':':
		return n, nil
	case '$':
		size, err := strconv.Atoi(line[1:])
		switch {
		case err != nil || size < -1 || size > maxMessage:
			return 0, errFraming
		case size == -1:
			return n, nil
		case len(in) < n+size+2:
			return 0, nil
		}
		return n + size + 2, nil
	case '*':
		count, err := strconv.Atoi(line[1:])
		if err != nil || count < -1 || count > maxMessage {
			return 0, errFraming
		}
		for range count {
			used, err := respValue(in[n:], depth+1)
			if used == 0 {
				return 0, err
			}
			n += used
		}
		return n, nil
	}
	return 0, errFraming
}

// bulk is the content of a bulk string; nil for other values.
func bulk(raw []byte) []byte {
	if len(raw) == 0 || raw[0] != '$' {
		return nil
	}
	line, n := cutLine(raw, "\r\n")
	if line == "$-1" || len(raw) < n+2 {
		return nil
	}
	return raw[n : len(raw)-2]
}

// respWords returns the bulk strings of an array.
func respWords(raw []byte) (words []string) {
	line, at := cutLine(raw, "\r\n")
	if !strings.HasPrefix(line, "*") {
		return nil
	}
	for at < len(raw) {
		n, err := respLength(raw[at:])
		if n == 0 || err != nil {
			return words
		}
		words = append(words, string(bulk(raw[at:at+n])))
		at += n
	}
	return words
}
