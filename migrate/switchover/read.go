package switchover

import (
	"bufio"
	"errors"
	"io"
)

// errFraming is returned for bytes that are not of the protocol.
var errFraming = errors.New("not of the protocol")

// maxLine bounds most lines of text.
const maxLine = 64 << 10

// readLine reads up to the end of a line. limit bounds its bytes.
func readLine(in *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(line) > limit:
			return nil, errFraming
		}
	}
}

// readFull reads n bytes. Memory grows with the received bytes, not with n.
func readFull(in *bufio.Reader, n int) ([]byte, error) {
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
