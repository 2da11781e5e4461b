package workq

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"broker/core"
)

func TestEveryCoreErrorHasARow(t *testing.T) {
	t.Parallel()
	for _, kind := range core.Errors {
		text := errorText(fmt.Errorf("somewhere: %w", kind))
		if text == internalError {
			t.Errorf("%v has no row", kind)
		}
		if !strings.HasPrefix(text, "-") || strings.Index(text, crlf) != len(text)-len(crlf) {
			t.Errorf("%v is told as %q, which is no line", kind, text)
		}
	}
	if len(wireErrors) != len(core.Errors) {
		t.Errorf("%d rows for %d kinds", len(wireErrors), len(core.Errors))
	}
	if got := errorText(errors.New("something else")); got != internalError {
		t.Errorf("an unknown error is told as %q", got)
	}
}
