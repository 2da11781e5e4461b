package core

import "unicode/utf8"

// CutText returns at most the first limit bytes of s, fewer where a UTF-8 character would be cut in half.
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
	return s[:end]
}
