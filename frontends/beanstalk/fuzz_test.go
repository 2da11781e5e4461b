package beanstalk

import (
	"bytes"
	"regexp"
	"testing"

	"broker/frontends/frontendtest"
)

// changing matches the lines of stats that differ between runs.
var changing = regexp.MustCompile(`(?m)^(rusage-[us]time|id|uptime): .*$`)

func FuzzSession(f *testing.F) {
	frontendtest.SplitFuzz{
		New:        plain,
		Stable:     func(replies []byte) []byte { return changing.ReplaceAll(replies, []byte("$1:")) },
		WellFormed: func(replies []byte) bool { return bytes.HasSuffix(replies, []byte(crlf)) },
	}.Fuzz(f, frontendtest.TranscriptInputs(f)...)
}
