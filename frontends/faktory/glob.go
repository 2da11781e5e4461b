package faktory

import "fmt"

// maxPattern bounds the patterns of MUTATE, in bytes: the time that a match takes grows with their length.
const maxPattern = 256

// glob is a compiled pattern. The rules are those of Redis: * matches any bytes, ? one byte, [ab] [a-z] [^a] one of a set,
// and \ takes the next byte literally. A pattern must match the whole text.
//
// Matching runs a nondeterministic automaton on a bit set: bit i says that the text so far matches the first i items of
// the pattern. Each byte of the text costs a few instructions per word of the set. There is no backtracking.
type glob struct {
	items int             // items of the pattern, without stars
	next  [256]globStates // by byte: the states whose next item matches it
	stars globStates      // the states before a star, where any byte is allowed
}

// globStates is a set of states. A pattern has one state more than items.
type globStates [maxPattern/64 + 1]uint64

// compileGlob compiles a pattern. The error is sent to the client.
func compileGlob(pattern string) (*glob, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("pattern is longer than %d bytes", maxPattern)
	}
	g := new(glob)
	for pattern != "" {
		word, bit := g.items/64, uint64(1)<<(g.items%64)
		if pattern[0] == '*' {
			g.stars[word] |= bit
			pattern = pattern[1:]
			continue
		}
		length := 0
		for c := range g.next {
			n, ok := globItem(pattern, byte(c))
			if length = n; ok {
				g.next[c][word] |= bit
			}
		}
		g.items++
		pattern = pattern[length:]
	}
	return g, nil
}

// match reports whether the pattern matches all of text.
func (g *glob) match(text []byte) bool {
	var now globStates
	now[0] = 1
	last := g.items / 64
	for _, c := range text {
		next := &g.next[c]
		var carry, any uint64
		for w := range last + 1 {
			moved := now[w] & next[w]
			now[w] = now[w]&g.stars[w] | moved<<1 | carry
			carry = moved >> 63
			any |= now[w]
		}
		if any == 0 {
			return false
		}
	}
	return now[last]>>(g.items%64)&1 != 0
}

// globItem returns the length of the first item of pattern, and whether it matches c.
func globItem(pattern string, c byte) (length int, ok bool) {
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

// globSet is globItem for a set. An unclosed set ends at the end of the pattern.
func globSet(pattern string, c byte) (length int, ok bool) {
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
