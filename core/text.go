package core

import (
	"strings"
	"unicode/utf8"
)

// CutText returns at most the first limit bytes of s, fewer where a UTF-8 character would be cut in half. A string that is cut is
// copied: what keeps the result must not keep the rest of what a client sent. Bytes are a part of s.
func CutText[T string | []byte](s T, limit int) T {
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && end > limit-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	if !utf8.RuneStart(s[end]) {
		end = limit // not UTF-8 anyway
	}
	if text, is := any(s[:end]).(string); is {
		return T(strings.Clone(text))
	}
	return s[:end]
}
