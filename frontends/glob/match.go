package glob

// Match reports whether a name matches a pattern that is used once. It backtracks to the last star only, so that a match takes
// at most len(pattern) × len(name) steps.
func Match(pattern, name string) bool {
	p, n := 0, 0
	star, from := -1, 0
	for n < len(name) {
		if p < len(pattern) {
			if pattern[p] == '*' {
				star, from = p, n
				p++
				continue
			}
			if length, ok := item(pattern[p:], name[n]); ok {
				p += length
				n++
				continue
			}
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
