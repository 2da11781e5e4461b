package coretest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A script is a text file of commands with their expected results. Each of its sections starts with an empty broker:
//
//	== a released job stands at its original place
//	w1 lease q                          a command: words, key=value options and -flags
//	    w1: assigned 1                  the expected result, indented; -update writes it
//	# a comment, kept as it is
//
// Words and values that hold spaces are written as Go strings: body="a b".

// Player executes the commands of one section.
type Player interface {
	// Do executes a command and returns its result as lines. An error is a mistake in the script.
	Do(*Command) (string, error)
	// Check is called after every command and returns a broken invariant, if any.
	Check() error
}

// Command is one command line.
type Command struct {
	Words   []string
	options []option
}

type option struct {
	name, value string
	used        bool
}

// Option returns the value of an option, or "", and marks the option as used. The value of a flag is "yes".
func (c *Command) Option(name string) string {
	for i := range c.options {
		if o := &c.options[i]; o.name == name {
			o.used = true
			return o.value
		}
	}
	return ""
}

// Word returns the word at index i, or "".
func (c *Command) Word(i int) string {
	if i >= len(c.Words) {
		return ""
	}
	return c.Words[i]
}

// unused returns the first option that was not used, to detect misspelled options.
func (c *Command) unused() string {
	for _, o := range c.options {
		if !o.used {
			return o.name
		}
	}
	return ""
}

// PlayScripts plays every file that matches glob, each section as a subtest with a new player from setup. With update
// it rewrites the files with the actual results.
func PlayScripts(t *testing.T, glob string, update bool, setup func(testing.TB) Player) {
	t.Helper()
	files, err := filepath.Glob(glob)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts in %s (%v)", glob, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), func(t *testing.T) {
			t.Parallel()
			s := readScript(t, file)
			for _, sec := range s {
				t.Run(sec.title, func(t *testing.T) { sec.play(t, setup(t), update) })
			}
			if update {
				writeScript(t, file, s)
			}
		})
	}
}

// section is a title with the lines below it, including those before the first title.
type section struct {
	title string
	lines []*line
}

// line is a command with its expected result, or a comment.
type line struct {
	number  int
	text    string
	want    []string
	got     []string
	comment bool
}

const (
	titleMark = "== "
	indent    = "    "
)

func readScript(t *testing.T, file string) []*section {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []*section
	for i, text := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
		if title, is := strings.CutPrefix(text, titleMark); is {
			all = append(all, &section{title: title})
			continue
		}
		if len(all) == 0 {
			all = append(all, &section{})
		}
		s := all[len(all)-1]
		switch {
		case text == "" || text[0] == '#':
			s.lines = append(s.lines, &line{number: i + 1, text: text, comment: true})
		case strings.HasPrefix(text, indent):
			if len(s.lines) == 0 || s.lines[len(s.lines)-1].comment {
				t.Fatalf("%s:%d: a result without a command", file, i+1)
			}
			l := s.lines[len(s.lines)-1]
			l.want = append(l.want, strings.TrimPrefix(text, indent))
		case s.title == "":
			t.Fatalf("%s:%d: a command before the first title", file, i+1)
		default:
			s.lines = append(s.lines, &line{number: i + 1, text: text})
		}
	}
	return all
}

// play executes the commands of a section in order and compares their results.
func (s *section) play(t *testing.T, p Player, update bool) {
	t.Helper()
	for _, l := range s.lines {
		if l.comment {
			continue
		}
		c, err := parseCommand(l.text)
		if err != nil {
			t.Fatalf("line %d: %v", l.number, err)
		}
		out, err := p.Do(c)
		if name := c.unused(); err == nil && name != "" {
			err = fmt.Errorf("option %s means nothing here", name)
		}
		if err != nil {
			t.Fatalf("line %d: %s: %v", l.number, l.text, err)
		}
		if out = strings.TrimRight(out, "\n"); out != "" {
			l.got = strings.Split(out, "\n")
		}
		if got, want := strings.Join(l.got, "\n"), strings.Join(l.want, "\n"); got != want && !update {
			t.Errorf("line %d: %s\ngot\n%s\nwant\n%s", l.number, l.text, got, want)
		}
		if err := p.Check(); err != nil {
			t.Fatalf("line %d: after %s: %v", l.number, l.text, err)
		}
	}
}

func writeScript(t *testing.T, file string, all []*section) {
	t.Helper()
	if t.Failed() {
		return // incomplete results are useless
	}
	var b strings.Builder
	for _, s := range all {
		if s.title != "" {
			b.WriteString(titleMark + s.title + "\n")
		}
		for _, l := range s.lines {
			b.WriteString(l.text + "\n")
			for _, got := range l.got {
				b.WriteString(indent + got + "\n")
			}
		}
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
