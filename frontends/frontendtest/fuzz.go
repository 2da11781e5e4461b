package frontendtest

import (
	"bytes"
	"testing"
)

// SplitFuzz fuzzes a connection: the replies must not depend on how the input is split.
type SplitFuzz struct {
	// New builds the front-end under test.
	New Maker

	// Stable removes the parts of replies that differ between runs. Nil: there are none.
	Stable func(replies []byte) []byte

	// WellFormed checks the replies, which are not empty. Nil: they are not checked.
	WellFormed func(replies []byte) bool
}

// maxFuzzBytes limits the input, because input that is fed byte by byte is parsed many times.
const maxFuzzBytes = 128 << 10

// Fuzz adds seeds and runs the fuzz test.
func (z SplitFuzz) Fuzz(f *testing.F, seeds ...[]byte) {
	f.Helper()
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > maxFuzzBytes {
			return
		}
		whole := z.repliesTo(t, in, max(len(in), 1))
		if z.WellFormed != nil && len(whole) > 0 && !z.WellFormed(whole) {
			t.Fatalf("the reply to %q is %q", in, whole)
		}
		for _, step := range []int{1, 3} {
			if split := z.repliesTo(t, in, step); !bytes.Equal(split, whole) {
				t.Fatalf("in pieces of %d bytes\n%q\n got %q\nwant %q", step, in, split, whole)
			}
		}
	})
}

// repliesTo returns the replies of a new broker to in, fed in pieces of step bytes and followed by EOF.
func (z SplitFuzz) repliesTo(t *testing.T, in []byte, step int) []byte {
	t.Helper()
	c := Open(t, z.New, InMemory).Dial("client")
	c.SendIn(step, in)
	replies := c.Rest()
	c.EOF()
	replies = append(replies, c.Rest()...)
	if z.Stable != nil {
		replies = z.Stable(replies)
	}
	return replies
}
