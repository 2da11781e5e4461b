package table

import (
	"testing"
)

func TestWholeResultIsBounded(t *testing.T) {
	t.Parallel()
	table, n := new(Table), &Transient{}
	table.Collect(n, make([]byte, maxCollected))
	if len(n.Data) != maxCollected || n.TooMuch {
		t.Fatalf("%d bytes kept at the limit, too much: %v", len(n.Data), n.TooMuch)
	}
	table.Collect(n, []byte("x"))
	table.Collect(n, []byte("y"))
	if len(n.Data) != 0 || !n.TooMuch {
		t.Fatalf("%d bytes kept beyond the limit, too much: %v", len(n.Data), n.TooMuch)
	}
}
