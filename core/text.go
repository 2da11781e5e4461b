package core

import (
	"strings"
	"unicode/utf8"
)

// CutText returns at most the first limit bytes of s, or fewer if a UTF-8 character would be cut in half. A shortened
// string is a copy, so that keeping it does not keep the rest of a client's request in memory. Shortened bytes are a
// part of s.
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
