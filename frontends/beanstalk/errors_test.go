package beanstalk

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
		text := errorText(fmt.Errorf("somewhere: %w", kind), true)
		if !strings.HasSuffix(text, crlf) || strings.ToUpper(text) != text {
			t.Errorf("the reply for %v is %q", kind, text)
		}
	}
	if len(wireErrors) != len(core.Errors) {
		t.Errorf("%d rows for %d kinds", len(wireErrors), len(core.Errors))
	}
	if got := errorText(errors.New("something else"), true); got != internalError {
		t.Errorf("the reply for an unknown error is %q", got)
	}
	if got := errorText(core.ErrDraining, false); got != internalError {
		t.Errorf("%q is a reply to put only", got)
	}
}
