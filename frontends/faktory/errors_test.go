package faktory

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"broker/core"
)

func TestEveryCoreErrorHasAText(t *testing.T) {
	t.Parallel()
	for _, kind := range core.Errors {
		text := wireErrors[kind]
		if text == "" {
			t.Errorf("%q has no row", kind)
			continue
		}
		if !strings.HasPrefix(text, "ERR ") && !strings.HasPrefix(text, "NOTUNIQUE ") {
			t.Errorf("%q: %q has no code that clients know", kind, text)
		}
		wrapped := fmt.Errorf("do this: %w", &wrapper{kind})
		if got, want := errorText(wrapped, "X"), strings.ReplaceAll(text, "NAME", "X"); got != want {
			t.Errorf("%q: got %q, want %q", kind, got, want)
		}
	}
	if len(wireErrors) != len(core.Errors) {
		t.Errorf("%d rows for %d kinds", len(wireErrors), len(core.Errors))
	}
	if got := errorText(errors.New("detail that is nobody's business"), "X"); got != "ERR internal error" {
		t.Errorf("an unknown error became %q", got)
	}
}

// wrapper hides an error one level deeper.
type wrapper struct{ inner error }

func (w *wrapper) Error() string { return "wrapped" }
func (w *wrapper) Unwrap() error { return w.inner }

func TestErrorTextIsCutAndStaysOneLine(t *testing.T) {
	t.Parallel()
	got := string(appendRefusal(nil, "invalid ACK "+strings.Repeat("é\r\n", 5000)))
	if len(got) > maxEcho+10 || strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "\r\n") {
		t.Errorf("%d bytes, %d lines", len(got), strings.Count(got, "\n"))
	}
}
