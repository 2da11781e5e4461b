package main

import (
	"bytes"
	"fmt"
)

// nextLine returns the first line of b without CRLF, and its length including it; 0 if it is incomplete.
func nextLine(b []byte) (line []byte, size int) {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		return nil, 0
	}
	return bytes.TrimSuffix(b[:end], []byte{'\r'}), end + 1
}

// lineProducer submits jobs and reads one line per submission, which must start with want.
type lineProducer struct {
	pipeline

	want []byte
}

func (p *lineProducer) feed(c *conn, b []byte) (int, error) {
	used := 0
	for {
		line, size := nextLine(b[used:])
		if size == 0 {
			break
		}
		if !bytes.HasPrefix(line, p.want) {
			return 0, fmt.Errorf("%q in place of %q", line, p.want)
		}
		used += size
		p.answered(c)
	}
	p.fill(c)
	return used, nil
}

// atoi parses a number in a reply.
func atoi(b []byte) (int, error) {
	n := 0
	for _, d := range b {
		if d < '0' || d > '9' || n > 1<<30 {
			return 0, fmt.Errorf("number %q", b)
		}
		n = n*10 + int(d-'0')
	}
	return n, nil
}

// lastWord returns the text after the last space of a line.
func lastWord(line []byte) []byte { return line[bytes.LastIndexByte(line, ' ')+1:] }

// word returns the n-th word of a line, or nil.
func word(line []byte, n int) []byte {
	for ; n > 0; n-- {
		_, rest, found := bytes.Cut(line, []byte{' '})
		if !found {
			return nil
		}
		line = rest
	}
	first, _, _ := bytes.Cut(line, []byte{' '})
	return first
}
