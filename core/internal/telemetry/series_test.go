package telemetry

import (
	"testing"
	"time"

	"broker/core"
)

// TestStoredBlocksAreReadBack stores a block and reads it.
func TestStoredBlocksAreReadBack(t *testing.T) {
	t.Parallel()
	b := &block{number: 12345}
	for i := range b.points {
		if i%3 > 0 {
			b.points[i] = point{uint32(i), 2, 1 << 31, 4, 5, 6, [3]uint16{7, 8, 1<<16 - 1}, [3]uint16{10, 11, 12}}
		}
	}
	v := b.encode()
	if got, err := decodeBlock(v); err != nil || *got != *b {
		t.Fatalf("%+v, %v", got, err)
	}
	for i := range v {
		if _, err := decodeBlock(v[:i]); err == nil {
			t.Fatalf("%d bytes of %d are a block", i, len(v))
		}
	}
}

// TestSpanCodesAreNearlyExact encodes and decodes spans of all lengths.
func TestSpanCodesAreNearlyExact(t *testing.T) {
	t.Parallel()
	last := time.Duration(-1)
	for us := core.Instant(0); us < 1<<42; us = us*65/64 + 1 {
		want := time.Duration(us) * time.Microsecond
		got := spanOf(spanCode(us))
		if got > want || want-got > want/1000 || got < last {
			t.Fatalf("%v comes back as %v, the one before as %v", want, got, last)
		}
		last = got
	}
}
