package wire

import (
	"bufio"
	"strconv"
	"strings"
)

// ReadBeanstalk reads a reply of beanstalkd: its words, and the data if the first word is OK, FOUND or RESERVED. limit
// bounds the data, in bytes.
func ReadBeanstalk(in *bufio.Reader, limit int) (words []string, data []byte, err error) {
	line, err := ReadLine(in, MaxLine)
	if err != nil {
		return nil, nil, err
	}
	words = strings.Fields(string(line))
	if len(words) == 0 {
		return nil, nil, ErrFraming
	}
	switch words[0] {
	case "OK", "FOUND", "RESERVED":
	default:
		return words, nil, nil
	}
	size, err := strconv.Atoi(words[len(words)-1])
	if err != nil || size < 0 || size > limit {
		return nil, nil, ErrFraming
	}
	data, err = ReadFull(in, size+len("\r\n"))
	if err != nil {
		return nil, nil, err
	}
	return words, data[:size], nil
}
