package machine

import "testing"

func TestWholeResultIsBounded(t *testing.T) {
	t.Parallel()
	m, n := new(Machine), &transient{}
	m.collect(n, make([]byte, maxCollected))
	if len(n.data) != maxCollected || n.tooMuch {
		t.Fatalf("%d bytes kept at the limit, too much: %v", len(n.data), n.tooMuch)
	}
	m.collect(n, []byte("x"))
	m.collect(n, []byte("y"))
	if len(n.data) != 0 || !n.tooMuch {
		t.Fatalf("%d bytes kept beyond the limit, too much: %v", len(n.data), n.tooMuch)
	}
}
