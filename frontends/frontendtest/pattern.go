package frontendtest

import (
	"bytes"
	"fmt"
)

// Vars are the texts that ${name} stood for.
type Vars map[string]string

// pattern is text with places that anything may stand in.
type pattern []piece

// piece is literal bytes, or a place: one with a name is remembered.
type piece struct {
	literal []byte
	capture bool
	name    string
}

// matching is how far data fits a pattern.
type matching uint8

// More bytes may make it fit; it fits; no more bytes will help.
const (
	partial matching = iota
	full
	mismatch
)

// parsePattern cuts text at its ${name} places.
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

// match compares the front of data with p. A place takes the shortest text up to the literal behind it; when all of p
// fits, the texts are put into vars and the number of bytes is returned.
func (p pattern) match(data []byte, vars Vars) (int, matching) {
	found := Vars{}
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

// Format writes the pattern as it would be written in a transcript.
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

// expand puts the texts that are known into text; the others stay as they are.
func (v Vars) expand(text string) string {
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
