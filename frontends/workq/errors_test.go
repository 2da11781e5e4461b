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
			t.Errorf("the reply for %v is %q, not one line", kind, text)
		}
	}
	if len(wireErrors) != len(core.Errors) {
		t.Errorf("%d rows for %d kinds", len(wireErrors), len(core.Errors))
	}
	if got := errorText(errors.New("something else")); got != internalError {
		t.Errorf("the reply for an unknown error is %q", got)
	}
}
