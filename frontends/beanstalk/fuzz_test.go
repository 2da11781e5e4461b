package beanstalk

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"broker/frontends/frontendtest"
)

// transcriptInputs returns what the transcripts send.
func transcriptInputs(t testing.TB) (seeds [][]byte) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.wire")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts (%v)", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			who, what, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			if !strings.HasSuffix(who, ">") {
				continue
			}
			p, err := frontendtest.Unescape(what)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			seeds = append(seeds, p)
		}
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
	return steady(append(before, c.Rest()...))
}

// changing matches the lines of stats that differ between runs.
var changing = regexp.MustCompile(`(?m)^(rusage-[us]time|id|uptime): .*$`)

func steady(out []byte) []byte { return changing.ReplaceAll(out, []byte("$1:")) }

func FuzzSession(f *testing.F) {
	for _, seed := range transcriptInputs(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		whole := replyOf(t, in, max(len(in), 1))
		if len(whole) > 0 && !bytes.HasSuffix(whole, []byte(crlf)) {
			t.Fatalf("the reply to %q is %q", in, whole)
		}
		for _, step := range []int{1, 3} {
			if split := replyOf(t, in, step); !bytes.Equal(split, whole) {
				t.Fatalf("in pieces of %d bytes\n%q\n got %q\nwant %q", step, in, split, whole)
			}
		}
	})
}
