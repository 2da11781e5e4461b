package conveyor

import (
	"strings"
	"testing"

	"broker/core"
)

func TestEveryRefusalHasText(t *testing.T) {
	t.Parallel()
	for _, err := range core.Errors {
		if text := errorText(err); text == "ERR internal error" || strings.ContainsAny(text, "\r\n") {
			t.Errorf("%v: %q", err, text)
		}
	}
}
