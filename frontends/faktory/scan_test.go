package faktory

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// valid runs the scanner over a whole text.
func valid(text []byte) bool {
	s := scanner{data: text}
	return utf8.Valid(text) && s.value(0) != nil && s.atEnd()
}

func TestScannerAcceptsJSONOnly(t *testing.T) {
	t.Parallel()
	good := []string{
		`0`, `-0`, `-0.0e+1`, `1E5`, `123456789012345678901234567890`, `1e400`, `""`, `"\u00e9\"\\\/\b\f\n\r\t"`, `"é"`,
		`"\ud800"`, `true`, `false`, `null`, `[]`, `[ ]`, `{}`, `{ }`, "\t[1 ,\r2]\n", `{"a":{"b":[{}]}}`,
		`{"":0,"":1}`,
		strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth),
	}
	for _, text := range good {
		if !valid([]byte(text)) || !json.Valid([]byte(text)) {
			t.Errorf("refused: %.100s", text)
		}
	}
	bad := []string{
		``, ` `, `01`, `-`, `+1`, `.5`, `1.`, `1e`, `1e+`, `tru`, `nulL`, `"`, `"\x"`, `"\u12g4"`, `"\u123`, "\"\x01\"",
		`[`, `[1,]`,
		`[1 2]`, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `{1:2}`, `[]]`, `{} x`, `"a" "b"`, `'a'`, "\x00", `"\`,
		strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1),
	}
	for _, text := range bad {
		if valid([]byte(text)) || json.Valid([]byte(text)) {
			t.Errorf("taken: %.100s", text)
		}
	}
}

func TestStringsSurviveQuotingAndDecoding(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "plain", `"quoted" \ /`, "tab\tline\nreturn\r\x00\x1f\x7f", "Grüße 日本 🙂 \u2028", "�",
	} {
		b := appendQuoted(nil, text)
		if got := decodeString(b); string(got) != text {
			t.Errorf("%q came back as %q (%s)", text, got, b)
		}
	}
	for raw, want := range map[string]string{
		`"\u0041\u00e9\u65e5"`: "Aé日",
		`"\ud83d\ude42"`:       "🙂",
		`"\ud83d"`:             "\ufffd",
		`"\ud83dx"`:            "\ufffdx",
		`"\ud83d\u0041"`:       "\ufffdA",
		`"\ude42\ud83d"`:       "\ufffd\ufffd",
	} {
		if got := decodeString([]byte(raw)); string(got) != want {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
	}
	if got := appendQuoted(nil, "a\xffb\xe2\x82"); string(got) != "\"a\ufffdb\ufffd\ufffd\"" {
		t.Errorf("broken bytes became %q", got)
	}
}

func TestIntegersAreExact(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]int64{"0": 0, "-7": -7, "9223372036854775807": 1<<63 - 1} {
		if n, ok := integer([]byte(raw)); !ok || n != want {
			t.Errorf("%s: %d %v", raw, n, ok)
		}
	}
	for _, raw := range []string{"1.0", "1e3", "9223372036854775808", `"1"`, "+1", "null"} {
		if n, ok := integer([]byte(raw)); ok {
			t.Errorf("%s taken for %d", raw, n)
		}
	}
}

func TestCompactKeepsStrings(t *testing.T) {
	t.Parallel()
	got := appendCompact(nil, []byte(" { \"a b\" : [ 1 , \" \\\" x\" ,\r\n null ] } "))
	if want := `{"a b":[1," \" x",null]}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The scanner accepts the same texts as encoding/json, except for invalid UTF-8, and decodes strings in the same way.
func FuzzScanner(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-2.5e3,"x\u00e9\n",null,true]}`, `"\ud83d\ude42"`, `[[[]]]`, `01`, "\"\xff\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		want := json.Valid(text) && utf8.Valid(text)
		if got := valid(text); got != want {
			t.Fatalf("%q: scanner says %v, encoding/json %v", text, got, want)
		}
		if !want {
			return
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, text); err != nil {
			t.Fatal(err)
		}
		if got := appendCompact(nil, text); !bytes.Equal(got, compact.Bytes()) {
			t.Errorf("%q: compact is %q, want %q", text, got, compact.Bytes())
		}
		var str string
		if trimmed := bytes.TrimSpace(text); trimmed[0] == '"' && json.Unmarshal(trimmed, &str) == nil {
			if got := decodeString(trimmed); string(got) != str {
				t.Errorf("%q decodes to %q, want %q", text, got, str)
			}
		}
	})
}

// Any text can be quoted, and decodes to the same text.
func FuzzQuote(f *testing.F) {
	f.Add("a\"b\\\x00\xff🙂")
	f.Fuzz(func(t *testing.T, text string) {
		var got string
		if err := json.Unmarshal(appendQuoted(nil, text), &got); err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(text, "\ufffd"); utf8.ValidString(text) && got != want {
			t.Errorf("%q became %q", text, got)
		}
	})
}
