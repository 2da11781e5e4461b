package wiretap

import "strconv"

// maxDepth limits the nesting of arrays.
const maxDepth = 8

// respLength is the length of the first RESP value in in; zero if it is incomplete. Unlike wire.ReadRESP it copies
// nothing, because it looks at a value again whenever more of it has arrived.
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
