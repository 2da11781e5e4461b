package frontendtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestPatternsMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, data string
		n             int
		want          matching
		id            string
	}{
		{"+OK\r\n", "+OK\r\n", 5, full, ""},
		{"+OK\r\n", "+OK\r\nmore", 5, full, ""},
		{"+OK\r\n", "+O", 0, partial, ""},
		{"+OK\r\n", "", 0, partial, ""},
		{"+OK\r\n", "-", 0, mismatch, ""},
		{"+OK\r\n", "+OKx", 0, mismatch, ""},
		{"", "x", 0, full, ""},
		{"a ${id} b", "a 17 b", 6, full, "17"},
		{"a ${id} b", "a  b", 4, full, ""},
		{"a ${id} b", "a 17", 0, partial, ""},
		{"a ${id} b", "a 17 c", 0, partial, ""},
		{"${}\r\n", "anything\r\nmore\r\n", 10, full, ""},
		{"a ${id", "a ${id", 6, full, ""},
	} {
		vars := bindings{}
		n, m := parsePattern([]byte(c.pattern)).match([]byte(c.data), vars)
		if n != c.n || m != c.want || vars["id"] != c.id {
			t.Errorf("%q in %q: got %d, %d, %v", c.pattern, c.data, n, m, vars)
		}
		if _, forgotten := vars[""]; forgotten {
			t.Errorf("%q in %q: the capture without a name was kept", c.pattern, c.data)
		}
	}
}

func TestDefinedNamesAreReplaced(t *testing.T) {
	t.Parallel()
	vars := bindings{"id": "17", "name": "ping"}
	for text, want := range map[string]string{
		"":                "",
		"add ${id}":       "add 17",
		"${name}${id}":    "ping17",
		"${new} ${id}":    "${new} 17",
		"${}":             "${}",
		"${id":            "${id",
		"a } ${ b ${id}}": "a } ${ b ${id}}",
	} {
		if got := vars.expand(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestPatternsAreFormattedAsInTranscripts(t *testing.T) {
	t.Parallel()
	const text = "+OK ${id} ${}\r\n"
	if got := fmt.Sprintf("%q", parsePattern([]byte(text))); got != fmt.Sprintf("%q", text) {
		t.Errorf("got %s", got)
	}
}

func TestEscapes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`plain`:              "plain",
		`a\r\n\x00\xffb\\`:   "a\r\n\x00\xffb\\",
		`{"json": 'quotes'}`: `{"json": 'quotes'}`,
		`\"\'`:               `"'`,
		`\u00e4ä`:            "ää",
		`\101`:               "A",
	} {
		if got, err := Unescape(text); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v", text, got, err)
		}
	}
	for _, text := range []string{`\`, `\x`, `\xg0`, `\q`} {
		if got, err := Unescape(text); err == nil {
			t.Errorf("%s: got %q, want an error", text, got)
		}
	}
}

func TestReadTranscript(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.wire")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# comment\n\n  a>  b c  \na< d\nclock +1s\nrestart\nlet x  y z\nsilent a\neof a\nclosed a\nhangup a\n")
	lines, err := readTranscript(file)
	want := []line{
		{"x.wire:3", ">", "a", "b c"},
		{"x.wire:4", "<", "a", "d"},
		{"x.wire:5", "clock", "", "+1s"},
		{"x.wire:6", "restart", "", ""},
		{"x.wire:7", "let", "x", "y z"},
		{"x.wire:8", "silent", "a", ""},
		{"x.wire:9", "eof", "a", ""},
		{"x.wire:10", "closed", "a", ""},
		{"x.wire:11", "hangup", "a", ""},
	}
	if err != nil || fmt.Sprint(lines) != fmt.Sprint(want) {
		t.Errorf("got %v, %v\nwant %v", lines, err, want)
	}
	write("a> b\nfoo bar\n")
	if lines, err := readTranscript(file); err == nil {
		t.Errorf("got %v, want an error", lines)
	}
}
