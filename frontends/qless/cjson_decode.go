package qless

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// parser reads JSON with the leniency and the error messages of the Lua library: hexadecimal numbers, inf and nan are
// numbers, and control characters may be in strings.
type parser struct {
	text  string
	at    int
	token token
}

// token is the next token of the text.
type token struct {
	kind  tokenKind
	at    int // position of its first character, or of the error
	text  string
	value float64
}

// tokenKind is the name of a kind of token in error messages.
type tokenKind string

const (
	objectBegin tokenKind = "T_OBJ_BEGIN"
	objectEnd   tokenKind = "T_OBJ_END"
	arrayBegin  tokenKind = "T_ARR_BEGIN"
	arrayEnd    tokenKind = "T_ARR_END"
	textToken   tokenKind = "T_STRING"
	numberToken tokenKind = "T_NUMBER"
	boolToken   tokenKind = "T_BOOLEAN"
	nullToken   tokenKind = "T_NULL"
	colonToken  tokenKind = "T_COLON"
	commaToken  tokenKind = "T_COMMA"
	endToken    tokenKind = "T_END"
	errorToken  tokenKind = "T_ERROR"
)

// The errors have the texts of the Lua library.
var (
	errTooDeep  = errors.New("Found too many nested data structures (1001)")  //nolint:staticcheck // see above
	errEncoding = errors.New("JSON parser does not support UTF-16 or UTF-32") //nolint:staticcheck // see above
)

// decode parses a JSON text.
func decode(text string) (any, error) {
	if len(text) >= 2 && (text[0] == 0 || text[1] == 0) {
		return nil, errEncoding
	}
	p := &parser{text: text}
	p.next()
	v, err := p.parse(0)
	if err != nil {
		return nil, err
	}
	if p.next(); p.token.kind != endToken {
		return nil, p.fail("the end")
	}
	return v, nil
}

func (p *parser) fail(want string) error {
	found := string(p.token.kind)
	if p.token.kind == errorToken {
		found = p.token.text
	}
	return fmt.Errorf("Expected %s but found %s at character %d", want, found, p.token.at+1) //nolint:staticcheck // the text of the Lua library
}

// parse reads a value that starts at the current token.
func (p *parser) parse(depth int) (any, error) {
	switch t := &p.token; t.kind { //nolint:exhaustive // other tokens do not start a value
	case textToken:
		return t.text, nil
	case numberToken:
		return t.value, nil
	case boolToken:
		return t.value != 0, nil
	case nullToken:
		return null{}, nil
	case objectBegin:
		return p.object(depth + 1)
	case arrayBegin:
		return p.array(depth + 1)
	}
	return nil, p.fail("value")
}

func (p *parser) object(depth int) (any, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	t := newTable(0)
	if p.next(); p.token.kind == objectEnd {
		return t, nil
	}
	for {
		if p.token.kind != textToken {
			return nil, p.fail("object key string")
		}
		key := p.token.text
		if p.next(); p.token.kind != colonToken {
			return nil, p.fail("colon")
		}
		p.next()
		v, err := p.parse(depth)
		if err != nil {
			return nil, err
		}
		t.set(key, v)
		p.next()
		switch p.token.kind { //nolint:exhaustive // the others are errors
		case objectEnd:
			return t, nil
		case commaToken:
			p.next()
		default:
			return nil, p.fail("comma or object end")
		}
	}
}

func (p *parser) array(depth int) (any, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	t := newTable(0)
	if p.next(); p.token.kind == arrayEnd {
		return t, nil
	}
	for {
		v, err := p.parse(depth)
		if err != nil {
			return nil, err
		}
		t.array = append(t.array, v)
		p.next()
		switch p.token.kind { //nolint:exhaustive // the others are errors
		case arrayEnd:
			return t, nil
		case commaToken:
			p.next()
		default:
			return nil, p.fail("comma or array end")
		}
	}
}

var marks = map[byte]tokenKind{
	'{': objectBegin, '}': objectEnd, '[': arrayBegin, ']': arrayEnd, ':': colonToken, ',': commaToken, 0: endToken,
}

// next reads the next token.
func (p *parser) next() {
	for p.at < len(p.text) && strings.IndexByte(" \t\n\r", p.text[p.at]) >= 0 {
		p.at++
	}
	p.token = token{at: p.at, kind: endToken}
	if p.at == len(p.text) {
		return
	}
	rest := p.text[p.at:]
	if kind, ok := marks[rest[0]]; ok {
		if p.token.kind = kind; kind != endToken {
			p.at++
		}
		return
	}
	switch {
	case rest[0] == '"':
		p.string()
	case strings.HasPrefix(rest, "true"):
		p.take(boolToken, 4, 1)
	case strings.HasPrefix(rest, "false"):
		p.take(boolToken, 5, 0)
	case strings.HasPrefix(rest, "null"):
		p.take(nullToken, 4, 0)
	case rest[0] == '-' || rest[0] >= '0' && rest[0] <= '9' || looseNumber(rest):
		p.number()
	default:
		p.error("invalid token")
	}
}

func (p *parser) take(kind tokenKind, n int, value float64) {
	p.token.kind, p.token.value = kind, value
	p.at += n
}

func (p *parser) error(text string) { p.token = token{kind: errorToken, at: p.at, text: text} }

// looseNumber reports whether a text begins with a number that JSON does not allow.
func looseNumber(s string) bool {
	if s[0] == '+' {
		return true
	}
	return len(s) >= 3 && (strings.EqualFold(s[:3], "inf") || strings.EqualFold(s[:3], "nan"))
}

// number reads a number in the syntax of C's strtod.
func (p *parser) number() {
	n := numberLen(p.text[p.at:])
	f, ok := parseNumber(p.text[p.at : p.at+n])
	if !ok {
		p.error("invalid number")
		return
	}
	p.take(numberToken, n, f)
}

// numberLen is the length of the number at the start of a text.
func numberLen(s string) int {
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	for _, word := range []string{"infinity", "inf", "nan"} {
		if len(s) >= i+len(word) && strings.EqualFold(s[i:i+len(word)], word) {
			return i + len(word)
		}
	}
	digits, exponent := "0123456789", "eE"
	if len(s) > i+2 && s[i] == '0' && (s[i+1] == 'x' || s[i+1] == 'X') && strings.IndexByte(hexAll, s[i+2]) >= 0 {
		digits, exponent = hexAll, "pP"
		i += 2
	}
	span := func() int {
		from := i
		for i < len(s) && strings.IndexByte(digits, s[i]) >= 0 {
			i++
		}
		return i - from
	}
	n := span()
	if i < len(s) && s[i] == '.' {
		i++
		n += span()
	}
	if n == 0 {
		return 0
	}
	if end := i; i < len(s) && strings.IndexByte(exponent, s[i]) >= 0 {
		i++
		if i < len(s) && (s[i] == '-' || s[i] == '+') {
			i++
		}
		digits = "0123456789"
		if span() == 0 {
			i = end
		}
	}
	return i
}

const hexAll = "0123456789abcdefABCDEF"

// string reads a string; p.at is at its first quote.
func (p *parser) string() {
	p.at++
	end := strings.IndexAny(p.text[p.at:], "\"\\\x00")
	if end >= 0 && p.text[p.at+end] == '"' {
		p.token.kind, p.token.text = textToken, p.text[p.at:p.at+end]
		p.at += end + 1
		return
	}
	var b []byte
	for {
		if p.at == len(p.text) || p.text[p.at] == 0 {
			p.error("unexpected end of string")
			return
		}
		c := p.text[p.at]
		switch c {
		case '"':
			p.at++
			p.token.kind, p.token.text = textToken, string(b)
			return
		case '\\':
			var fault string
			if b, fault = p.escape(b); fault != "" {
				p.error(fault)
				return
			}
		default:
			b = append(b, c)
			p.at++
		}
	}
}

// escape reads an escape sequence.
func (p *parser) escape(b []byte) (_ []byte, fault string) {
	if p.at+1 == len(p.text) {
		return b, "invalid escape code"
	}
	c := p.text[p.at+1]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return p.unicode(b)
	default:
		return b, "invalid escape code"
	}
	p.at += 2
	return append(b, c), ""
}

// unicode reads \u and four hexadecimal digits, or two such escapes for a surrogate pair.
func (p *parser) unicode(b []byte) (_ []byte, fault string) {
	const invalid = "invalid unicode escape code"
	code, ok := hex4(p.text[p.at+2:])
	if !ok {
		return b, invalid
	}
	n := 6
	if code&0xF800 == 0xD800 {
		rest := p.text[p.at+6:]
		if code&0x400 != 0 || !strings.HasPrefix(rest, `\u`) {
			return b, invalid
		}
		low, ok := hex4(rest[2:])
		if !ok || low&0xFC00 != 0xDC00 {
			return b, invalid
		}
		code, n = (code&0x3FF)<<10|low&0x3FF+0x10000, 12
	}
	p.at += n
	return utf8.AppendRune(b, code), ""
}

func hex4(s string) (code rune, ok bool) {
	if len(s) < 4 {
		return 0, false
	}
	for i := range 4 {
		d := strings.IndexByte(hexAll, s[i])
		if d < 0 {
			return 0, false
		}
		if d >= 16 {
			d -= 6
		}
		code = code<<4 | rune(d)
	}
	return code, true
}
