package replica

import (
	"bytes"
	"errors"
	"testing"

	"broker/core/internal/record"
)

func TestPartsAreJoinedIntoTheEntry(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, partBytes, partBytes + 1, 3*partBytes + 5} {
		entry := bytes.Repeat([]byte("e"), size)
		parts := cut(entry, record.Position{Epoch: 3, Number: 9})
		var a assembly
		for i, p := range parts {
			if len(p) > partBytes+64 {
				t.Errorf("%d bytes: part of %d", size, len(p))
			}
			got, err := a.add(p)
			if err != nil || (got != nil) != (i == len(parts)-1) {
				t.Fatalf("%d bytes, part %d of %d: %d bytes, %v", size, i, len(parts), len(got), err)
			}
			if i == len(parts)-1 && !bytes.Equal(got, entry) {
				t.Errorf("%d bytes came back as %d", size, len(got))
			}
		}
		if a.open() {
			t.Errorf("%d bytes: something is left", size)
		}
	}
}

// Parts that a replaced leader has left incomplete never become part of another entry.
func TestPartsOfDifferentEntriesNeverMix(t *testing.T) {
	t.Parallel()
	at := func(epoch, number uint64) record.Position { return record.Position{Epoch: epoch, Number: number} }
	long := bytes.Repeat([]byte("l"), 2*partBytes+1)
	old, fresh, whole := cut(long, at(1, 5)), cut(long, at(2, 5)), cut([]byte("w"), at(2, 5))
	for name, c := range map[string]struct {
		parts [][]byte
		want  []int // length of the entry after each part; -1: refused
	}{
		"replaced by another":       {[][]byte{old[0], fresh[0], fresh[1], fresh[2]}, []int{0, 0, 0, len(long)}},
		"replaced by a whole one":   {[][]byte{old[0], old[1], whole[0], old[2]}, []int{0, 0, 1, -1}},
		"continued after another":   {[][]byte{old[0], fresh[0], old[1]}, []int{0, 0, -1}},
		"without the first":         {[][]byte{old[1], old[2]}, []int{-1, -1}},
		"one is missing":            {[][]byte{old[0], old[2], old[1]}, []int{0, -1, -1}},
		"the same again":            {[][]byte{old[0], old[1], old[1]}, []int{0, 0, -1}},
		"begun again":               {[][]byte{old[0], old[0], old[1], old[2]}, []int{0, 0, 0, len(long)}},
		"nothing":                   {[][]byte{{}}, []int{-1}},
		"of a kind that is unknown": {[][]byte{{99, 1}}, []int{-1}},
		"cut short":                 {[][]byte{old[0][:3]}, []int{-1}},
	} {
		var a assembly
		for i, p := range c.parts {
			got, err := a.add(p)
			if (err != nil) != (c.want[i] < 0) || err == nil && len(got) != c.want[i] {
				t.Errorf("%s, part %d: %d bytes, %v", name, i, len(got), err)
			}
		}
	}
	var a assembly
	if _, err := a.add([]byte{99}); !errors.Is(err, record.ErrNewerFormat) {
		t.Error(err)
	}
}
