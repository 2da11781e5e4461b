package workq

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestCutLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		line string
		n    int
		bare bool
	}{
		{"", "", 0, false},
		{"add", "", 0, false},
		{"add\r", "", 0, false},
		{"add\r\n", "add", 5, false},
		{"add\r\nrest\r\n", "add", 5, false},
		{"\r\n", "", 2, false},
		{"\n", "", 1, true},
		{"add\n", "add", 4, true},
		{"add\rx\r\n", "add\rx", 7, false},
		{"add\r\r\n", "add\r", 6, false},
	} {
		for from := 0; from <= strings.IndexByte(c.in+"\n", '\n'); from++ {
			line, n, bare := cutLine([]byte(c.in), min(from, len(c.in)))
			if string(line) != c.line || n != c.n || bare != c.bare {
				t.Errorf("%q from %d: got %q, %d, %v", c.in, from, line, n, bare)
			}
		}
	}
}

func TestBodyEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in  string
		n   int
		end bodyEnd
	}{
		{"", 0, endShort},
		{"\r", 0, endShort},
		{"\r\n", 2, endGood},
		{"\r\nadd", 2, endGood},
		{"\n", 1, endWrong},
		{"\nadd", 1, endWrong},
		{"x", 0, endShort},
		{"xy", 2, endWrong},
		{"xy\r\n", 2, endWrong},
		{"x\r", 0, endShort},
		{"x\r\n", 3, endLost},
		{"x\ry", 2, endWrong},
		{"\r\r\n", 3, endLost},
	} {
		if n, end := cutBodyEnd([]byte(c.in)); n != c.n || end != c.end {
			t.Errorf("%q: got %d, %d, want %d, %d", c.in, n, end, c.n, c.end)
		}
	}
}

// show formats a request as in the cases of the test below.
func show(r *request) string {
	b := fmt.Appendf(nil, "%s|%s|", r.word, bytes.Join(r.args, []byte{','}))
	for _, f := range r.flags {
		b = fmt.Appendf(b, "%s:%s,", f.key, f.value)
	}
	if r.badFlags {
		b = append(b, '!')
	}
	return string(b)
}

func TestTokens(t *testing.T) {
	t.Parallel()
	many := ""
	for i := range 40 {
		many += fmt.Sprintf(" -f%d=1", i)
	}
	for _, c := range []struct{ line, want string }{
		{"", "||"},
		{"add", "add||"},
		{"add a b", "add|a,b|"},
		{"add  a   b  ", "add|a,b|"},
		{" add a", "|add,a|"},
		{"add\ta", "add\ta||"},
		{"add -x=1 a", "add|a|x:1,"},
		{"add a -x=1 b -y=2", "add|a,b|x:1,y:2,"},
		{"-x=1 add", "|add|x:1,"},
		{"-x= add", "|add|x:,!"},
		{"-x=1 add -x=1", "|add|x:1,x:1,!"},
		{"-x add", "-x|add|"},
		{"add -x", "add|-x|"},
		{"add -", "add|-|"},
		{"add x=1", "add|x=1|"},
		{"add -x=1=2", "add||x:1=2,"},
		{"add -x==", "add||x:=,!"},
		{"add -x==1", "add||x:=1,!"},
		{"add -=1", "add||:1,!"},
		{"add -x=", "add||x:,!"},
		{"add -x=1 -x=2", "add||x:1,x:2,!"},
		{"add -x=1 -X=1", "add||x:1,X:1,"},
	} {
		r := &request{}
		r.parse([]byte(c.line))
		if got := show(r); got != c.want {
			t.Errorf("%q: got %s, want %s", c.line, got, c.want)
		}
	}
	for extra, bad := range map[string]bool{"": false, " -f3=2": true, " -f39=2": true, " -other=1": false} {
		r := &request{}
		if r.parse([]byte("add" + many + extra)); r.badFlags != bad {
			t.Errorf("many flags and %q: bad %v, want %v", extra, r.badFlags, bad)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		size int64
		ok   bool
	}{
		{"0", 0, true},
		{"+1", 1, true},
		{"01", 1, true},
		{"-1", -1, true},
		{"-0", 0, true},
		{"9223372036854775807", 1<<63 - 1, true},
		{"9223372036854775808", 0, false},
		{"99999999999999999999", 0, false},
		{"", 0, false},
		{"-", 0, false},
		{"+", 0, false},
		{"--1", 0, false},
		{"+-1", 0, false},
		{"1.0", 0, false},
		{"1e3", 0, false},
		{"0x10", 0, false},
		{"1_000", 0, false},
		{" 1", 0, false},
	} {
		if size, ok := parseSize([]byte(c.in)); ok != c.ok || ok && size != c.size {
			t.Errorf("size %q: got %d, %v", c.in, size, ok)
		}
	}
	for _, c := range []struct {
		in   string
		want int32
		ok   bool
	}{
		{"0", 0, true},
		{"+5", 5, true},
		{"-5", -5, true},
		{"2147483647", 1<<31 - 1, true},
		{"2147483648", 0, false},
		{"-2147483648", -1 << 31, true},
		{"-2147483649", 0, false},
		{"1=2", 0, false},
		{"x", 0, false},
	} {
		if n, ok := parsePriority([]byte(c.in)); ok != c.ok || ok && n != c.want {
			t.Errorf("priority %q: got %d, %v", c.in, n, ok)
		}
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	const canonical = "6ba7b810-9dad-41d1-80b4-00c04fd430c4"
	for _, spelling := range []string{
		canonical,
		strings.ToUpper(canonical),
		strings.ReplaceAll(canonical, "-", ""),
		"{" + canonical + "}",
		"urn:uuid:" + canonical,
	} {
		id, ok := parseID([]byte(spelling))
		if !ok || !id.valid || id.text != canonical {
			t.Errorf("%q: got %s, %v", spelling, id.text, ok)
		}
	}
	for _, bad := range []string{
		"", "x", canonical + "x", canonical + " ", canonical[:35], "x" + canonical, canonical[:35] + "g",
		"{" + canonical, canonical + "}", "{" + canonical + "]", "urn:uuid:", "urn:uuid:xxxxxxxx-xxxx-xxxx-xxxx",
		"urn:uuid:{" + canonical + "}", "URN:" + canonical, "{}", "{", "{{" + canonical + "}}",
		strings.Replace(canonical, "-", "", 1), strings.Replace(canonical, "-", "_", 1),
		"urn:uuid:" + canonical + "0", "6ba7b810-9dad-41d1-80b4-00c04fd430c4-",
	} {
		if id, ok := parseID([]byte(bad)); ok {
			t.Errorf("%q was taken for %s", bad, id.text)
		}
	}
	for _, wrong := range []string{
		"00000000-0000-0000-0000-000000000000",
		"6ba7b810-9dad-11d1-80b4-00c04fd430c4", // version 1
		"6ba7b810-9dad-51d1-80b4-00c04fd430c4", // version 5
		"6ba7b810-9dad-41d1-00b4-00c04fd430c4", // variant NCS
		"6ba7b810-9dad-41d1-c0b4-00c04fd430c4", // variant Microsoft
	} {
		if id, ok := parseID([]byte(wrong)); !ok || id.valid {
			t.Errorf("%q: parsed %v, valid %v", wrong, ok, id.valid)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"a": true, "A-Z_a.z09": true, "-abc": true, "": false, "a b": false, "a\t": false, "a/b": false, "ä": false,
		"a=b": false, strings.Repeat("x", 255): true, strings.Repeat("x", 256): false, "\x00": false,
	} {
		if validName([]byte(name)) != ok {
			t.Errorf("name %.20q: got %v", name, !ok)
		}
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"2030-01-02T03:04:05Z": true, "2030-01-02T03:04:05.5Z": true, "9999-12-31T23:59:59Z": true,
		"0001-01-01T00:00:00Z": true, "2030-01-02T03:04:05": false, "2030-01-02T03:04:05+01:00": false,
		"2030-01-02 03:04:05Z": false, "2030-13-02T03:04:05Z": false, "2030-02-30T03:04:05Z": false, "": false,
		"1": false, "10000-01-01T00:00:00Z": false, "2030-01-02T03:04:05Zx": false,
	} {
		if _, got := parseTime([]byte(text)); got != ok {
			t.Errorf("time %q: got %v", text, got)
		}
	}
	at, _ := parseTime([]byte("2030-01-02T03:04:05.25Z"))
	if want := time.Date(2030, 1, 2, 3, 4, 5, 250_000_000, time.UTC); !at.Equal(want) {
		t.Errorf("got %s, want %s", at, want)
	}
}

func TestSpecialCharactersInNamesAreEscaped(t *testing.T) {
	t.Parallel()
	if got := string(appendName(nil, "a\r\nb c\x00d\x7f")); got != "a%0d%0ab%20c%00d%7f" {
		t.Errorf("got %q", got)
	}
}

func FuzzID(f *testing.F) {
	f.Add([]byte("6ba7b810-9dad-41d1-80b4-00c04fd430c4"))
	f.Add([]byte("{6BA7B8109DAD41D180B400C04FD430C4}"))
	f.Add([]byte("urn:uuid:6ba7b810-9dad-41d1-80b4-00c04fd430c4"))
	f.Fuzz(func(t *testing.T, in []byte) {
		id, ok := parseID(in)
		if !ok {
			return
		}
		again, ok := parseID([]byte(id.text))
		if !ok || again != id {
			t.Errorf("%q became %s, which became %s, %v", in, id.text, again.text, ok)
		}
	})
}

func FuzzLine(f *testing.F) {
	for _, s := range []string{"add a b -c=d", " x", "a  -=", "-=- -=-", "lease a b 1 -x=1 -x=2"} {
		f.Add([]byte(s), []byte("\r\n"))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		in := append(append([]byte{}, first...), second...)
		line, n, bare := cutLine(in, 0)
		// The part known to have no line end is skipped.
		for from := 0; from < len(in) && in[from] != '\n'; from++ {
			l, m, b := cutLine(in, from+1)
			if string(l) != string(line) || m != n || b != bare {
				t.Fatalf("from %d: %q, %d, %v instead of %q, %d, %v", from+1, l, m, b, line, n, bare)
			}
		}
		r := &request{}
		r.parse([]byte("used before -a=b -a=b"))
		r.parse(line)
		length := len(r.word)
		for _, a := range r.args {
			length += 1 + len(a)
		}
		for _, g := range r.flags {
			length += len(" -=") + len(g.key) + len(g.value)
		}
		if length > len(line)+len(" ") { // a flag in front has no blank before it
			t.Fatalf("%q: tokens of %d bytes", line, length)
		}
		fresh := &request{}
		fresh.parse(line)
		if show(r) != show(fresh) {
			t.Fatalf("%q: %s, then %s", line, show(r), show(fresh))
		}
	})
}

func BenchmarkParse(b *testing.B) {
	in := []byte("add 6ba7b810-9dad-41d1-80b4-00c04fd430c4 ping 1000 60000 4 -priority=1\r\npong\r\n")
	r := &request{}
	b.ReportAllocs()
	for b.Loop() {
		line, _, _ := cutLine(in, 0)
		r.parse(line)
		if _, ok := parseID(r.args[0]); !ok {
			b.Fatal("no id")
		}
	}
}
