package resp

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
)

// read reads all commands of an input that arrives in pieces of step bytes, and the error that ends it.
func read(in []byte, step int) (commands [][]string, err error) {
	r := reader{Max: 1 << 16}
	unread := 0
	for end := min(step, len(in)); ; end = min(end+step, len(in)) {
		for {
			args, n, err := r.Next(in[unread:end], nil)
			if errors.Is(err, errShort) {
				break
			}
			if err != nil {
				return commands, err
			}
			unread += n
			words := make([]string, len(args))
			for i, a := range args {
				words[i] = string(a)
			}
			commands = append(commands, words)
		}
		if end == len(in) {
			return commands, nil
		}
	}
}

func TestReaderCutsCommands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		want     [][]string
		wrong    string
	}{
		{"an array", "*2\r\n$4\r\nECHO\r\n$3\r\na\r\n\r\n", [][]string{{"ECHO", "a\r\n"}}, ""},
		{"a line of words", "PING \"a b\"\r\n", [][]string{{"PING", "a b"}}, ""},
		{"an empty line", "\r\nPING\r\n", [][]string{{}, {"PING"}}, ""},
		{"a null array", "*-1\r\nPING\r\n", [][]string{{}, {"PING"}}, ""},
		{"half a command", "*2\r\n$4\r\nECHO\r\n$3\r\na", nil, ""},
		{"no length", "*x\r\n", nil, "Protocol error: invalid multibulk length"},
		{"a long argument", "*1\r\n$70000\r\n", nil, "Protocol error: invalid bulk length"},
		{"no bulk string", "*1\r\n:1\r\n", nil, "Protocol error: expected '$', got ':'"},
		{"an open quote", "PING \"a\r\n", nil, "Protocol error: unbalanced quotes in request"},
	} {
		for _, step := range []int{1, 3, len(c.in)} {
			got, err := read([]byte(c.in), step)
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%s in steps of %d: got %q, want %q", c.name, step, got, c.want)
			}
			if (err == nil) != (c.wrong == "") || err != nil && err.Error() != c.wrong {
				t.Errorf("%s in steps of %d: got error %v, want %q", c.name, step, err, c.wrong)
			}
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("*1\r\n$4\r\nPING\r\nECHO a\r\n"))
	f.Add([]byte("*-1\r\n*3\r\n$1\r\na"))
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, wrong := read(in, max(len(in), 1))
		split, wrongToo := read(in, 1)
		if !reflect.DeepEqual(whole, split) || (wrong == nil) != (wrongToo == nil) {
			t.Fatalf("whole %q, %v; split %q, %v", whole, wrong, split, wrongToo)
		}
	})
}
