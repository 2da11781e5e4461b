package wire

import (
	"bufio"
	"errors"
	"io"
)

// ErrFraming is returned for bytes that are not of the protocol, or more than a limit.
var ErrFraming = errors.New("not of the protocol")

const (
	MaxLine    = 64 << 10  // of most lines of text, in bytes
	MaxMessage = 64 << 20  // of one request or reply that is passed on, in bytes
	MaxBody    = 1<<30 - 1 // of one body that an import reads, in bytes
)

// ReadLine reads up to the end of a line and returns it with its end. limit bounds its bytes.
func ReadLine(in *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > limit:
			return nil, ErrFraming
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// ReadFull reads n bytes. Memory grows with the received bytes, not with n.
func ReadFull(in *bufio.Reader, n int) ([]byte, error) {
	const step = 1 << 20
	p := make([]byte, 0, min(n, step))
	for len(p) < n {
		at := len(p)
		p = append(p, make([]byte, min(n-at, max(step, at)))...)
		if _, err := io.ReadFull(in, p[at:]); err != nil {
			return nil, err
		}
	}
	return p, nil
}
