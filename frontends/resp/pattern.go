package resp

// matches reports whether a name fits a pattern as Redis understands it: * ? [a-z] [^a] and \ before any of these. It
// backtracks to the last star only, so that a match takes at most len(pattern) × len(name) steps.
func matches(pattern, name string) bool {
	p, n := 0, 0
	star, from := -1, 0
	for n < len(name) {
		if p < len(pattern) && pattern[p] == '*' {
			star, from = p, n
			p++
			continue
		}
		if end, ok := matchesOne(pattern, p, name[n]); ok {
			p = end
			n++
			continue
		}
		if star < 0 {
			return false
		}
		from++
		p, n = star+1, from
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchesOne reports whether a byte fits the pattern at p, and where the pattern goes on.
func matchesOne(pattern string, p int, c byte) (end int, ok bool) {
	if p == len(pattern) {
		return p, false
	}
	switch pattern[p] {
	case '?':
		return p + 1, true
	case '[':
		ok, rest := matchesSet(pattern[p+1:], c)
		return len(pattern) - len(rest), ok
	case '\\':
		if p+1 < len(pattern) {
			p++
		}
	}
	return p + 1, pattern[p] == c
}

// matchesSet reports whether a byte is in a set like [a-z], and returns the pattern after the set. The caller has read the
// opening bracket.
func matchesSet(pattern string, c byte) (ok bool, rest string) {
	not := pattern != "" && pattern[0] == '^'
	if not {
		pattern = pattern[1:]
	}
	for pattern != "" && pattern[0] != ']' {
		switch {
		case pattern[0] == '\\' && len(pattern) > 1:
			ok = ok || pattern[1] == c
			pattern = pattern[2:]
		case len(pattern) > 2 && pattern[1] == '-':
			low, high := min(pattern[0], pattern[2]), max(pattern[0], pattern[2])
			ok = ok || low <= c && c <= high
			pattern = pattern[3:]
		default:
			ok = ok || pattern[0] == c
			pattern = pattern[1:]
		}
	}
	if pattern != "" {
		pattern = pattern[1:]
	}
	return ok != not, pattern
}
