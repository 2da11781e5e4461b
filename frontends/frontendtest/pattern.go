package frontendtest

import (
	"bytes"
	"fmt"
)

// bindings are the values of the ${name}s of a transcript.
type bindings map[string]string

// pattern is text with captures.
type pattern []piece

// piece is literal bytes or a capture. The text of a named capture is kept.
type piece struct {
	literal []byte
	capture bool
	name    string
}

// matching is the result of a match.
type matching uint8

// partial: more bytes may complete the match.
const (
	partial matching = iota
	full
	mismatch
)

// parsePattern parses text with ${name}s.
func parsePattern(text []byte) pattern {
	var p pattern
	for {
		at := bytes.Index(text, []byte("${"))
		end := -1
		if at >= 0 {
			end = bytes.IndexByte(text[at:], '}')
		}
		if end < 0 {
			if len(text) > 0 {
				p = append(p, piece{literal: text})
			}
			return p
		}
		if at > 0 {
			p = append(p, piece{literal: text[:at]})
		}
		p = append(p, piece{capture: true, name: string(text[at+2 : at+end])})
		text = text[at+end+1:]
	}
}

// match compares the start of data with p. A capture takes the shortest text up to the next literal. On a full match it
// sets vars and returns the number of bytes.
func (p pattern) match(data []byte, vars bindings) (int, matching) {
	found := bindings{}
	at := 0
	for i := 0; i < len(p); i++ {
		rest := data[at:]
		if !p[i].capture {
			n := min(len(rest), len(p[i].literal))
			if !bytes.Equal(rest[:n], p[i].literal[:n]) {
				return 0, mismatch
			}
			if n < len(p[i].literal) {
				return 0, partial
			}
			at += n
			continue
		}
		n := len(rest)
		if i+1 < len(p) {
			if n = bytes.Index(rest, p[i+1].literal); n < 0 {
				return 0, partial
			}
		}
		found[p[i].name] = string(rest[:n])
		at += n
	}
	for name, text := range found {
		if name != "" {
			vars[name] = text
		}
	}
	return at, full
}

// Format writes the pattern as in a transcript.
func (p pattern) Format(f fmt.State, verb rune) {
	var text []byte
	for _, x := range p {
		if x.capture {
			text = append(append(append(text, "${"...), x.name...), '}')
			continue
		}
		text = append(text, x.literal...)
	}
	_, _ = fmt.Fprintf(f, fmt.FormatString(f, verb), text) // a State does not fail
}

// expand replaces the ${name}s that are defined.
func (v bindings) expand(text string) string {
	out := []byte{}
	for _, x := range parsePattern([]byte(text)) {
		if !x.capture {
			out = append(out, x.literal...)
			continue
		}
		if known, ok := v[x.name]; ok {
			out = append(out, known...)
			continue
		}
		out = append(append(append(out, "${"...), x.name...), '}')
	}
	return string(out)
}
