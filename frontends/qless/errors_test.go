package qless

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"broker/core"
	"broker/frontends/frontendtest"
)

func TestEveryCoreErrorHasARow(t *testing.T) {
	t.Parallel()
	unknown := errorText(errors.New("something else"))
	for _, kind := range core.Errors {
		text := errorText(fmt.Errorf("somewhere: %w", kind))
		if text == unknown {
			t.Errorf("%v has no row", kind)
		}
		if strings.ContainsAny(text, "\r\n") {
			t.Errorf("%v is told as %q, which is no line", kind, text)
		}
	}
}

// testdata/errors.txt has the rows of the specification.
func TestErrorsOfTheScript(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/errors.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, c := setup(t, frontendtest.InMemory)
	frame := regexp.MustCompile(`^-ERR (?:user_script:1: )?(.*) script: ` + scriptSHA + `, on @user_script:1\.$`)
	address := regexp.MustCompile(`0x[0-9a-f]+`)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words, want, isRow := strings.Cut(line, " => ")
		got := c.call(strings.Fields(words)...)
		switch parts := frame.FindStringSubmatch(got); {
		case !isRow && strings.HasPrefix(got, "-"):
			t.Errorf("%s: %s", line, got)
		case !isRow:
		case parts == nil:
			t.Errorf("%s\n got %s", line, got)
		case address.ReplaceAllString(parts[1], "0x") != want:
			t.Errorf("%s\n got %s", line, parts[1])
		}
	}
}

func TestFailedCallRollsBackItsChanges(t *testing.T) {
	t.Parallel()
	_, c := setup(t, frontendtest.InMemory)
	c.call("put", "1", "me", "q", "a", "K", "{}", "0", "tags", `["t"]`)
	c.call("pop", "1", "q", "w", "1")
	before := c.call("get", "2", "a") + c.call("tag", "2", "top", "0", "9") + c.call("queues", "2")
	for _, words := range [][]string{
		{"timeout", "2", "a", "nobody"},
		{"put", "2", "me", "q2", "a", "K", "{}", "0", "tags", `["u"]`, "depends", "{"},
		{"put", "2", "me", "q2", "b", "K", "{}", "0", "retries", "x"},
		{"fail", "2", "a", "w", "g", "m", "{"},
	} {
		if got := c.call(words...); !strings.HasPrefix(got, "-ERR") {
			t.Errorf("%q: %s", words, got)
		}
	}
	if after := c.call("get", "2", "a") + c.call("tag", "2", "top", "0", "9") + c.call("queues", "2"); after != before {
		t.Errorf("before %s\nafter  %s", before, after)
	}
}
