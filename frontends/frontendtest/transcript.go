package frontendtest

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Script defines how transcripts are played.
type Script struct {
	// Stage builds a new stage for each run.
	Stage func(testing.TB) *Stage

	// Encode turns the text of a line into bytes, for protocols whose packets are written by name. Defined ${name}s are
	// replaced before. Nil: Unescape.
	Encode func(text string) ([]byte, error)

	// Greet completes the handshake of a new connection. Nil: there is none.
	Greet func(*Client)
}

// PlayAll plays every .wire file of a directory.
func (s Script) PlayAll(t *testing.T, dir string) {
	t.Helper()
	for _, file := range transcripts(t, dir) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".wire"), func(t *testing.T) {
			t.Parallel()
			s.Play(t, file)
		})
	}
}

// transcripts returns the .wire files of a directory.
func transcripts(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.wire"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts in %s (%v)", dir, err)
	}
	return files
}

// TranscriptInputs returns the bytes that the transcripts in testdata send, as seeds for fuzzing: each send, and all
// sends of a file together.
func TranscriptInputs(t testing.TB) [][]byte {
	t.Helper()
	var seeds [][]byte
	for _, file := range transcripts(t, "testdata") {
		lines, err := readTranscript(file)
		if err != nil {
			t.Fatal(err)
		}
		p := player{vars: bindings{}}
		all := []byte{}
		for _, l := range lines {
			switch l.verb {
			case "let":
				p.do(t, l)
			case ">":
				in := p.encode(t, l)
				seeds, all = append(seeds, in), append(all, in...)
			}
		}
		seeds = append(seeds, all)
	}
	return seeds
}

// Play plays one file twice: with whole requests, and byte by byte.
func (s Script) Play(t *testing.T, file string) {
	t.Helper()
	lines, err := readTranscript(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, split := range []bool{false, true} {
		name := "whole"
		if split {
			name = "byte by byte"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stage := s.Stage(t)
			stage.Split = split
			p := player{script: s, stage: stage, clients: map[string]*Client{}, vars: bindings{}}
			p.play(t, lines)
		})
	}
}

// line is one line of a transcript.
type line struct {
	where string // file and number
	verb  string // ">", "<" or a directive
	who   string
	text  string
}

// readTranscript parses a file.
func readTranscript(file string) ([]line, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	var lines []line
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<22)
	for n := 1; in.Scan(); n++ {
		text := strings.TrimSpace(in.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		l := line{where: fmt.Sprintf("%s:%d", filepath.Base(file), n)}
		head, rest, _ := strings.Cut(text, " ")
		rest = strings.TrimSpace(rest)
		switch last := head[len(head)-1:]; {
		case last == ">" || last == "<":
			l.verb, l.who, l.text = last, head[:len(head)-1], rest
		case head == "clock", head == "restart":
			l.verb, l.text = head, rest
		case head == "let":
			l.verb = head
			l.who, l.text, _ = strings.Cut(rest, " ")
			l.text = strings.TrimSpace(l.text)
		case head == "silent", head == "eof", head == "closed", head == "hangup":
			l.verb, l.who = head, rest
		default:
			return nil, fmt.Errorf("%s: unknown line %q", l.where, text)
		}
		lines = append(lines, l)
	}
	return lines, in.Err()
}

// player is one run of a transcript.
type player struct {
	script  Script
	stage   *Stage
	clients map[string]*Client
	vars    bindings
}

// play runs all lines, then checks that no unread bytes are left.
func (p *player) play(t *testing.T, lines []line) {
	t.Helper()
	for i := 0; i < len(lines); i++ {
		l := lines[i]
		p.stage.where = l.where + ": "
		if l.verb != ">" {
			p.do(t, l)
			continue
		}
		data := p.encode(t, l)
		for i+1 < len(lines) && lines[i+1].verb == ">" && lines[i+1].who == l.who {
			i++
			data = append(data, p.encode(t, lines[i])...)
		}
		p.client(l.who).SendBytes(data)
	}
	p.stage.where = "at the end: "
	for _, name := range slices.Sorted(maps.Keys(p.clients)) {
		p.clients[name].WantSilence()
	}
}

// do runs one line that is not a send.
func (p *player) do(t testing.TB, l line) {
	t.Helper()
	switch l.verb {
	case "<":
		p.client(l.who).expect(parsePattern(p.encode(t, l)), p.vars)
	case "let":
		p.vars[l.who] = p.vars.expand(l.text)
	case "clock":
		d, err := time.ParseDuration(strings.TrimPrefix(l.text, "+"))
		if err != nil {
			t.Fatalf("%s: %v", l.where, err)
		}
		p.stage.Advance(d)
	case "restart":
		p.stage.Restart()
		clear(p.clients)
	case "silent":
		p.client(l.who).WantSilence()
	case "eof":
		p.client(l.who).EOF()
	case "closed":
		p.client(l.who).WantClosed()
	case "hangup":
		p.client(l.who).Hangup()
	}
}

// client returns the connection of that name, and opens it the first time.
func (p *player) client(name string) *Client {
	c := p.clients[name]
	if c == nil {
		c = p.stage.Dial(name)
		if p.script.Greet != nil {
			p.script.Greet(c)
		}
		p.clients[name] = c
	}
	return c
}

// encode returns the bytes of a line.
func (p *player) encode(t testing.TB, l line) []byte {
	t.Helper()
	encode := p.script.Encode
	if encode == nil {
		encode = Unescape
	}
	data, err := encode(p.vars.expand(l.text))
	if err != nil {
		t.Fatalf("%s: %v", l.where, err)
	}
	return data
}

// Unescape decodes Go escapes. Quotes need not be escaped.
func Unescape(text string) ([]byte, error) {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		if text[0] != '\\' {
			out = append(out, text[0])
			text = text[1:]
			continue
		}
		quote := byte(0)
		if len(text) > 1 && (text[1] == '"' || text[1] == '\'') {
			quote = text[1]
		}
		r, multibyte, rest, err := strconv.UnquoteChar(text, quote)
		if err != nil {
			return nil, fmt.Errorf("unescape %q: %w", text, err)
		}
		if multibyte {
			out = append(out, string(r)...)
		} else {
			out = append(out, byte(r))
		}
		text = rest
	}
	return out, nil
}
