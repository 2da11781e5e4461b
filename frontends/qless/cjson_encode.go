package qless

import (
	"errors"
	"math"
	"strconv"
)

// JSON values are nil (only outside tables), null, bool, float64, string, *table, and for encoding also []string and
// encoded.

// encoded is JSON.
type encoded []byte

// null is JSON's null inside of tables.
type null struct{}

// maxDepth is the maximum nesting of values.
const maxDepth = 1000

var errNotFinite = errors.New("Cannot serialise number: must not be NaN or Inf") //nolint:staticcheck // the text of the Lua library

// encode returns v as JSON in the style of the Lua library.
func encode(v any) (string, error) {
	b, err := appendJSON(nil, v, 0)
	return string(b), err
}

func appendJSON(b []byte, v any, depth int) ([]byte, error) {
	switch v := v.(type) {
	case bool:
		return strconv.AppendBool(b, v), nil
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return b, errNotFinite
		}
		return appendNumber(b, v), nil
	case string:
		return appendText(b, v), nil
	case []string:
		return appendList(b, v), nil
	case encoded:
		return append(b, v...), nil
	case *table:
		if depth == maxDepth {
			return b, errors.New("Cannot serialise, excessive depth (1001)") //nolint:staticcheck // likewise
		}
		return v.append(b, depth+1)
	}
	return append(b, "null"...), nil
}

// json returns a table as JSON. Its numbers must be finite.
func (t *table) json() string {
	s, err := encode(t)
	if err != nil {
		return "{}"
	}
	return s
}

// appendList writes a list of strings; an empty one is {}.
func appendList(b []byte, items []string) []byte {
	if len(items) == 0 {
		return append(b, "{}"...)
	}
	for i, s := range items {
		b = appendText(append(b, "[,"[min(i, 1)]), s)
	}
	return append(b, ']')
}

func (t *table) append(b []byte, depth int) (_ []byte, err error) {
	if t.keys == 0 && len(t.array) > 0 {
		b = append(b, '[')
		for i, v := range t.array {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendJSON(b, v, depth); err != nil {
				return b, err
			}
		}
		return append(b, ']'), nil
	}
	b = append(b, '{')
	start := len(b)
	for i, v := range t.array {
		b = append(strconv.AppendInt(append(comma(b, start), '"'), int64(i+1), 10), `":`...)
		if b, err = appendJSON(b, v, depth); err != nil {
			return b, err
		}
	}
	for i := range t.nodes {
		if n := &t.nodes[i]; n.used {
			b = append(appendText(comma(b, start), n.key), ':')
			if b, err = appendJSON(b, n.value, depth); err != nil {
				return b, err
			}
		}
	}
	return append(b, '}'), nil
}

// comma writes a comma if there are members before; they begin at start.
func comma(b []byte, start int) []byte {
	if len(b) > start {
		return append(b, ',')
	}
	return b
}

const hexDigits = "0123456789abcdef"

// appendText writes a string with the escapes of the Lua library.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c != '/' && c != 0x7f {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\', '/':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, `\b`...)
		case '\t':
			b = append(b, `\t`...)
		case '\n':
			b = append(b, `\n`...)
		case '\f':
			b = append(b, `\f`...)
		case '\r':
			b = append(b, `\r`...)
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(b, s[from:]...), '"')
}
