package faktory

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// readLines reads input in the given pieces and returns lines and errors.
func readLines(limit int, pieces ...string) (got []string) {
	r := lineReader{max: limit, jobMax: 2 * limit}
	var unread []byte
	for _, p := range pieces {
		unread = append(unread, p...)
		for len(unread) > 0 {
			line, n, err := r.next(unread)
			switch {
			case err == nil:
				got = append(got, string(line))
			case errors.As(err, new(lineTooLong)):
				got = append(got, err.Error())
			}
			unread = unread[n:]
			if errors.Is(err, errShort) {
				break
			}
		}
	}
	return got
}

func TestLinesEndInCRLFOrLF(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"crlf", "INFO\r\nEND\r\n", []string{"INFO", "END"}},
		{"lf", "INFO\nEND\n", []string{"INFO", "END"}},
		{"empty lines", "\r\n\n", []string{"", ""}},
		{"a lone carriage return stays", "a\rb\r\r\n", []string{"a\rb\r"}},
		{"no end, no line", "INFO", nil},
		{"as long as allowed", "12345678\r\n12345678\n", []string{"12345678", "12345678"}},
		{"too long, then on", "123456789\r\nok\r\n", []string{"line is longer than 8 bytes", "ok"}},
		{"much too long", strings.Repeat("x", 50) + "\nok\n", []string{"line is longer than 8 bytes", "ok"}},
		{"too long without end", strings.Repeat("x", 50), []string{"line is longer than 8 bytes"}},
		{
			"jobs may be longer", "PUSH 67890123456\r\nACK 5678\nPUSHB 7890\n",
			[]string{"PUSH 67890123456", "ACK 5678", "PUSHB 7890"},
		},
		{"a job that is too long", "PUSH 678901234567\r\nINFO\n", []string{"line is longer than 16 bytes", "INFO"}},
		{"a verb that starts like one", "PUSHX 789\r\nINFO\n", []string{"line is longer than 8 bytes", "INFO"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := readLines(8, c.in); !reflect.DeepEqual(got, c.want) {
				t.Errorf("whole: got %q, want %q", got, c.want)
			}
			if got := readLines(8, strings.Split(c.in, "")...); !reflect.DeepEqual(got, c.want) {
				t.Errorf("byte by byte: got %q, want %q", got, c.want)
			}
		})
	}
}

func TestLongLineIsSearchedOnce(t *testing.T) {
	t.Parallel()
	r := lineReader{max: 1 << 20}
	in := []byte(strings.Repeat("x", 1000))
	if _, n, err := r.next(in); n != 0 || !errors.Is(err, errShort) || r.seen != 1000 {
		t.Fatalf("n %d, err %v, seen %d", n, err, r.seen)
	}
	in[500] = '\n' // must not be searched again
	if _, _, err := r.next(in); !errors.Is(err, errShort) {
		t.Errorf("the first bytes were searched twice")
	}
}

func TestVerbEndsAtTheFirstSpace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line, verb, arg string
		bare            bool
	}{
		{"INFO", "INFO", "", true},
		{"PUSH ", "PUSH", "", false},
		{"PUSH  {}", "PUSH", " {}", false},
		{"QUEUE PAUSE a", "QUEUE", "PAUSE a", false},
		{"", "", "", true},
	} {
		verb, arg, bare := splitVerb([]byte(c.line))
		if string(verb) != c.verb || string(arg) != c.arg || bare != c.bare {
			t.Errorf("%q: %q %q %v", c.line, verb, arg, bare)
		}
	}
	if got, ok := words([]byte("  a b   c ")); !ok || fmt.Sprintf("%q", got) != `["a" "b" "c"]` {
		t.Errorf("words: %q", got)
	}
	if got, ok := words(bytes.Repeat([]byte("q "), maxNames)); !ok || len(got) != maxNames {
		t.Errorf("%d words", len(got))
	}
	if _, ok := words(bytes.Repeat([]byte("q "), maxNames+1)); ok {
		t.Error("too many words are taken")
	}
}

// Lines do not depend on how input is split, and unread input is bounded.
func FuzzLineReader(f *testing.F) {
	f.Add("INFO\r\nEND\n", 3, 8)
	f.Add("\r\n\r\n123456789\r\nx\n", 1, 8)
	f.Add(strings.Repeat("x", 40)+"\n\n", 7, 8)
	f.Fuzz(func(t *testing.T, in string, step, limit int) {
		limit = 8 + limit&0xff // longer than any verb
		step = 1 + step&0x3f
		var pieces []string
		for rest := in; rest != ""; {
			n := min(step, len(rest))
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		whole, split := readLines(limit, in), readLines(limit, pieces...)
		if !reflect.DeepEqual(whole, split) {
			t.Errorf("whole %q, split %q", whole, split)
		}
		r := lineReader{max: limit, jobMax: 2 * limit}
		unread := 0
		for _, p := range pieces {
			_, n, err := r.next([]byte(strings.Repeat("x", unread) + strings.ReplaceAll(p, "\n", "x")))
			if unread += len(p) - n; unread > 2*limit+1+len(p) || err == nil {
				t.Fatalf("%d bytes unread under a limit of %d", unread, 2*limit)
			}
		}
	})
}
