package glob

import "fmt"

// maxPattern bounds the patterns of Compile, in bytes: the time that a match takes grows with their length.
const maxPattern = 256

// maxWords bounds the sets of states of patterns.
const maxWords = 1024/64 + 1

// Pattern is a compiled pattern.
//
// Matching runs a nondeterministic automaton on a bit set: bit i says that the text so far matches the first i items of
// the pattern. Each byte of the text costs a few instructions per word of the set. There is no backtracking.
type Pattern struct {
	items int      // items of the pattern, without stars
	words int      // of a set; a pattern has one state more than items
	next  []uint64 // by byte, a set each: the states whose next item matches it
	stars []uint64 // the states before a star, where any byte is allowed
}

// Compile compiles a pattern. The error is sent to the client.
func Compile(pattern string) (*Pattern, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("pattern is longer than %d bytes", maxPattern)
	}
	return CompileLong(pattern), nil
}

// CompileLong is Compile for a pattern that the caller has bounded to 1,024 bytes. The result takes 32 bytes of
// memory for each byte.
func CompileLong(pattern string) *Pattern {
	words := len(pattern)/64 + 1
	p := &Pattern{words: words, next: make([]uint64, 256*words), stars: make([]uint64, words)}
	for pattern != "" {
		word, bit := p.items/64, uint64(1)<<(p.items%64)
		if pattern[0] == '*' {
			p.stars[word] |= bit
			pattern = pattern[1:]
			continue
		}
		length := 0
		for c := range 256 {
			n, ok := item(pattern, byte(c))
			if length = n; ok {
				p.next[c*words+word] |= bit
			}
		}
		p.items++
		pattern = pattern[length:]
	}
	return p
}

// Match reports whether the pattern matches all of text.
func (p *Pattern) Match(text []byte) bool { return match(p, text) }

// MatchString is Match for a string.
func (p *Pattern) MatchString(text string) bool { return match(p, text) }

func match[T []byte | string](p *Pattern, text T) bool {
	var states [maxWords]uint64
	states[0] = 1
	last := p.items / 64
	now, stars := states[:last+1], p.stars[:last+1]
	for i := range len(text) {
		at := int(text[i]) * p.words
		next := p.next[at : at+last+1]
		var carry, any uint64
		for w := range now {
			moved := now[w] & next[w]
			now[w] = now[w]&stars[w] | moved<<1 | carry
			carry = moved >> 63
			any |= now[w]
		}
		if any == 0 {
			return false
		}
	}
	return now[last]>>(p.items%64)&1 != 0
}

// item returns the length of the first item of pattern, and whether it matches c.
func item(pattern string, c byte) (length int, ok bool) {
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		return set(pattern, c)
	case '\\':
		if len(pattern) > 1 {
			return 2, pattern[1] == c
		}
	}
	return 1, pattern[0] == c
}

// set is item for a set. An unclosed set ends at the end of the pattern.
func set(pattern string, c byte) (length int, ok bool) {
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
