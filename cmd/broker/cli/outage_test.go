package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestOutageIsPrintedOnce(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	o := outage{say: func(format string, args ...any) { fmt.Fprintf(&log, format+"\n", args...) }}
	o.answered()
	for range 3 {
		o.failed(errors.New("no broker answers\nstart one"))
	}
	o.answered()
	o.answered()
	o.failed(errors.New("EOF"))
	if want := "no broker answers; trying again\nthe broker answers again\nEOF; trying again\n"; log.String() != want {
		t.Errorf("printed %q, want %q", log.String(), want)
	}
}
