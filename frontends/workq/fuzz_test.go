package workq

import (
	"bytes"
	"testing"

	"broker/frontends/frontendtest"
)

func FuzzSession(f *testing.F) {
	frontendtest.SplitFuzz{New: plain, WellFormed: func(replies []byte) bool {
		return (replies[0] == '+' || replies[0] == '-') && bytes.HasSuffix(replies, []byte(crlf))
	}}.Fuzz(f, frontendtest.TranscriptInputs(f)...)
}
