package resp

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"broker/core"
)

func TestSharedErrorRowsAreErrorsOfTheCore(t *testing.T) {
	t.Parallel()
	for kind := range wireErrors {
		if !slices.Contains(core.Errors, kind) {
			t.Errorf("%v is not a kind of the core", kind)
		}
	}
}

func TestRowsOfTheFrontendComeFirst(t *testing.T) {
	t.Parallel()
	own := map[error]string{core.ErrFull: "ERR full", core.ErrDuplicate: "ERR twice"}
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("add: %w", core.ErrFull), "ERR full"},
		{core.ErrDuplicate, "ERR twice"},
		{core.ErrDiskFull, "OOM the disk is nearly full, no new jobs are accepted"},
		{errors.New("something else"), "ERR internal error"},
	} {
		if got := ErrorText(own, c.err); got != c.want {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
		}
	}
}
