package faktory

// glob reports whether all of text matches pattern, by the rules of Redis: * any bytes, ? one byte, [ab] [a-z] [^a] one
// of a set, \ takes the next byte as it is. It needs time in proportion to both lengths multiplied, at worst.
func glob[T string | []byte](pattern string, text T) bool {
	p, t := 0, 0
	star, mark := -1, 0 // the last star, and where in text the part behind it was last tried
	for t < len(text) {
		if p < len(pattern) && pattern[p] == '*' {
			star, mark = p, t
			p++
			continue
		}
		if n, ok := globOne(pattern[p:], text[t]); ok {
			p += n
			t++
			continue
		}
		if star < 0 {
			return false
		}
		mark++
		p, t = star+1, mark
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// globOne matches one byte with the item in front of pattern and tells the item's length.
func globOne(pattern string, c byte) (n int, ok bool) {
	if pattern == "" {
		return 0, false
	}
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		return globSet(pattern, c)
	case '\\':
		if len(pattern) > 1 {
			return 2, pattern[1] == c
		}
	}
	return 1, pattern[0] == c
}

// globSet matches a set. One that is not closed ends with the pattern.
func globSet(pattern string, c byte) (n int, ok bool) {
	i := 1
	not := i < len(pattern) && pattern[i] == '^'
	if not {
		i++
	}
	for ; i < len(pattern) && pattern[i] != ']'; i++ {
		switch {
		case pattern[i] == '\\' && i+1 < len(pattern):
			i++
			ok = ok || pattern[i] == c
		case i+2 < len(pattern) && pattern[i+1] == '-':
			lo, hi := pattern[i], pattern[i+2]
			ok = ok || c >= min(lo, hi) && c <= max(lo, hi)
			i += 2
		default:
			ok = ok || pattern[i] == c
		}
	}
	return min(i+1, len(pattern)), ok != not
}
