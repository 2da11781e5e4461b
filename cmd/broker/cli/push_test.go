package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestTimesAreParsedInSeveralFormats(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		text string
		sign time.Duration
		want time.Time
	}{
		{"2030-01-31T10:00:00Z", 1, now.Add(-2 * time.Hour)},
		{"90m", 1, now.Add(90 * time.Minute)},
		{"1h", -1, now.Add(-time.Hour)},
		{"2d", -1, now.Add(-48 * time.Hour)},
		{"tomorrow", 1, time.Time{}},
		{"d", 1, time.Time{}},
	} {
		got, err := parseTime(test.text, now, test.sign)
		if !got.Equal(test.want) || (err == nil) == test.want.IsZero() {
			t.Errorf("%s: %v, %v; want %v", test.text, got, err, test.want)
		}
	}
}

func TestBodiesThatLookLikeArguments(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		body           string
		insist         bool
		args, ok, warn bool
	}{
		{"[1, 2]", false, true, true, false},
		{"[1, 2", false, false, true, true},
		{"hello", false, false, true, false},
		{"[1, 2", true, false, false, false},
		{"hello", true, false, false, false},
		{"[]", true, true, true, false},
	} {
		warned := false
		s := &submission{
			args: test.insist, changed: func(string) bool { return false }, warn: func(string) { warned = true },
		}
		j, err := s.job("q", []byte(test.body), time.Now())
		if _, args := j["args"]; args != test.args || (err == nil) != test.ok || warned != test.warn {
			t.Errorf("%+v: %v, %v, warned %t", test, j, err, warned)
		}
	}
}

func TestTokensComeWithTheirHash(t *testing.T) {
	t.Parallel()
	cmd := tokenCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"new"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(out.String())
	if len(words) != 4 || len(words[1]) < 20 || len(words[3]) != len("sha256:")+64 {
		t.Errorf("%q", out.String())
	}
}

func TestServersWithoutAPortHaveTheDefaultOne(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]string{
		"jobs": "http://jobs:7420", "jobs:80": "http://jobs:80", "[::1]": "http://[::1]:7420",
		"http://jobs": "http://jobs", "https://jobs": "https://jobs",
	} {
		if c, err := newClient(server, ""); err != nil || c.base.String() != want {
			t.Errorf("%s: %v, %v; want %s", server, c, err, want)
		}
	}
}
