package wire_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"broker/migrate/wire"
)

func TestRESPValuesAreReadFromConnectionsAndFromMemory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ raw, text string }{
		{"+OK\r\n", "OK"},
		{"$5\r\na\r\nbc\r\n", "a\r\nbc"},
		{"$0\r\n\r\n", ""},
		{"$-1\r\n", ""},
		{"-ERR no\r\n", "ERR no"},
		{":7\r\n", "7"},
		{"*-1\r\n", "-1"},
		{"*3\r\n$1\r\na\r\n*2\r\n$-1\r\n:5\r\n*-1\r\n", "3"},
		{"*2\r\n*0\r\n*1\r\n*0\r\n", "2"},
		{strings.Repeat("*1\r\n", 8) + ":1\r\n", "1"},
	} {
		in := c.raw + "+next\r\n"
		raw, err := wire.ReadRESP(reader(in), 10)
		if text := string(wire.RESPText(raw)); err != nil || string(raw) != c.raw || text != c.text {
			t.Errorf("%q from a connection: %q, text %q, error %v", in, raw, text, err)
		}
		for end := range len(in) + 1 {
			want := 0
			if end >= len(c.raw) {
				want = len(c.raw)
			}
			if n, err := wire.RESPLength([]byte(in[:end]), 10); n != want || err != nil {
				t.Errorf("%q from memory: length %d, want %d, error %v", in[:end], n, want, err)
			}
		}
	}
}

func TestItemsOfRESPArrays(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"*3\r\n$1\r\na\r\n*2\r\n$-1\r\n:5\r\n*-1\r\n": "$1\r\na\r\n|*2\r\n$-1\r\n:5\r\n|*-1\r\n",
		"*-1\r\n":        "",
		"*0\r\n":         "",
		"$1\r\na\r\n":    "no array",
		"+OK\r\n":        "no array",
		"":               "no array",
		"*1\r\n$5\r\na":  "no array",
		"*1\r\n?\r\n":    "no array",
		"*2\r\n:1\r\n+a": "no array",
	} {
		items, isArray := wire.RESPItems([]byte(raw))
		got := string(bytes.Join(items, []byte("|")))
		if !isArray {
			got += "no array"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
	}
}

// TestRESPLimitsHoldBeforeMemoryIsUsed has values that announce more than the limit, that are not RESP, or that end
// early.
func TestRESPLimitsHoldBeforeMemoryIsUsed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		want error // of the connection; memory: none unless it is ErrFraming
	}{
		{"$999999999999\r\n", wire.ErrFraming},
		{"$67108865\r\n", wire.ErrFraming},
		{"$67108864\r\nshort", io.ErrUnexpectedEOF},
		{"$-2\r\n", wire.ErrFraming},
		{"$x\r\n", wire.ErrFraming},
		{"$1\r\nabc", wire.ErrFraming},
		{"*67108865\r\n", wire.ErrFraming},
		{"*67108864\r\n+OK\r\n", io.EOF},
		{strings.Repeat("*67108864\r\n", 8), io.EOF},
		{strings.Repeat("*1\r\n", 9), wire.ErrFraming},
		{strings.Repeat("+", wire.MaxLine), io.EOF},
		{strings.Repeat("+", wire.MaxLine+1), wire.ErrFraming},
		{"+" + strings.Repeat("x", wire.MaxLine-2) + "\r\n", wire.ErrFraming},
		{"+OK\n", wire.ErrFraming},
		{"\r\n", wire.ErrFraming},
		{"HTTP/1.1 400 Bad Request\r\n", wire.ErrFraming},
		{"", io.EOF},
		{"+OK", io.EOF},
	} {
		_, err := wire.ReadRESP(reader(c.in), wire.MaxMessage)
		if !errors.Is(err, c.want) {
			t.Errorf("%.40q from a connection: error %v, want %v", c.in, err, c.want)
		}
		n, err := wire.RESPLength([]byte(c.in), wire.MaxMessage)
		if n != 0 || errors.Is(err, wire.ErrFraming) != errors.Is(c.want, wire.ErrFraming) {
			t.Errorf("%.40q from memory: length %d, error %v", c.in, n, err)
		}
	}
}

// FuzzRESP reads bytes from a connection and from memory: both find the same value, or the same fault.
func FuzzRESP(f *testing.F) {
	for _, seed := range []string{
		"+OK\r\n", "$2\r\nab\r\n", "*2\r\n$-1\r\n*1\r\n:7\r\n", "*-1\r\n-ERR\r\n", "*1\r\n*1\r\n*0\r\n", "$1\r\nabc",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		value, err := wire.ReadRESP(reader(string(in)), 1<<10)
		n, wrong := wire.RESPLength(in, 1<<10)
		if n != len(value) || (wrong == nil) == errors.Is(err, wire.ErrFraming) || (n > 0) != (err == nil) {
			t.Fatalf("from a connection %q, error %v; from memory %d bytes, error %v", value, err, n, wrong)
		}
		if !bytes.HasPrefix(in, value) {
			t.Fatalf("%q of %q", value, in)
		}
		if items, isArray := wire.RESPItems(value); isArray {
			head, _, _ := bytes.Cut(value, []byte("\n"))
			if len(head)+1+len(bytes.Join(items, nil)) != len(value) {
				t.Fatalf("items %q of %q", items, value)
			}
		}
	})
}
