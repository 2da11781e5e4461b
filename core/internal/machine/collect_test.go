package machine

import "testing"

func TestWholeResultIsBounded(t *testing.T) {
	t.Parallel()
	n := &transient{}
	n.collect(make([]byte, maxCollected))
	if len(n.data) != maxCollected || n.tooMuch {
		t.Fatalf("%d bytes kept at the limit, too much: %v", len(n.data), n.tooMuch)
	}
	n.collect([]byte("x"))
	n.collect([]byte("y"))
	if len(n.data) != 0 || !n.tooMuch {
		t.Fatalf("%d bytes kept beyond the limit, too much: %v", len(n.data), n.tooMuch)
	}
}
