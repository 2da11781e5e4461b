package workq

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"broker/frontends/frontendtest"
)

// transcriptInputs returns what the transcripts send, one seed for each connection.
func transcriptInputs(t testing.TB) [][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.wire")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts (%v)", err)
	}
	var seeds [][]byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all := []byte{}
		for line := range strings.Lines(string(text)) {
			who, what, _ := strings.Cut(strings.TrimSpace(line), " ")
			if !strings.HasSuffix(who, ">") {
				continue
			}
			what = strings.NewReplacer("${a}", idOf(1), "${b}", idOf(2), "${c}", idOf(3), "${d}", idOf(4)).Replace(what)
			p, err := frontendtest.Unescape(strings.TrimSpace(what))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			seeds = append(seeds, p)
			all = append(all, p...)
		}
		seeds = append(seeds, all)
	}
	return seeds
}

// replyOf is the reply of a new broker to in, fed in pieces of step bytes and followed by EOF.
func replyOf(t testing.TB, in []byte, step int) []byte {
	t.Helper()
	s := frontendtest.Open(t, plain, frontendtest.InMemory)
	c := s.Dial("client")
	c.SendIn(step, in)
	before := c.Rest()
	c.EOF()
	return append(before, c.Rest()...)
}

// wantLines checks that a reply starts with + or - and ends with a line end.
func wantLines(t *testing.T, in, out []byte) {
	t.Helper()
	if len(out) == 0 {
		return
	}
	if out[0] != '+' && out[0] != '-' || !bytes.HasSuffix(out, []byte(crlf)) {
		t.Fatalf("to %q it said %q", in, out)
	}
}

func FuzzSession(f *testing.F) {
	for _, seed := range transcriptInputs(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		whole := replyOf(t, in, max(len(in), 1))
		wantLines(t, in, whole)
		for _, step := range []int{1, 3} {
			if split := replyOf(t, in, step); !bytes.Equal(split, whole) {
				t.Fatalf("in pieces of %d bytes\n%q\n got %q\nwant %q", step, in, split, whole)
			}
		}
	})
}
