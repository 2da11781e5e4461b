package eventloop

import (
	"testing"

	"broker/frontends"
)

// nibbler takes one byte at a time.
type nibbler struct {
	frontends.Session
	taken int
}

func (n *nibbler) Feed([]byte) int {
	n.taken++
	return 1
}

func TestSessionMayTakeInputInManySmallParts(t *testing.T) {
	t.Parallel()
	s := &nibbler{}
	c := &conn{session: s, group: &group{bounds: frontends.Bounds{MaxInput: 1 << 20, MaxOutput: 1 << 20}}}
	if n := c.feed(make([]byte, 1000)); n != 1000 || s.taken != 1000 {
		t.Errorf("%d bytes in %d parts", n, s.taken)
	}
}
