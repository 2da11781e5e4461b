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
	c, _ := quietConn()
	s := &nibbler{}
	c.session = s
	in := make([]byte, 1000)
	for len(in) > 0 { // a turn may be over before
		in = in[c.feed(in):]
	}
	if s.taken != 1000 {
		t.Errorf("%d parts", s.taken)
	}
}
