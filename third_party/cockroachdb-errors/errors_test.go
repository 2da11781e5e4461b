package errors_test

import (
	stderrors "errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/cockroachdb/errors/oserror"
)

var errCorrupt = errors.New("corruption")

func TestMarksReachThroughWrappers(t *testing.T) {
	err := errors.Wrapf(errors.WithDetailf(errors.Mark(errors.Newf("block %d", errors.Safe(7)), errCorrupt), "offset %d", 3), "file %s", "x")
	if !errors.Is(err, errCorrupt) || !stderrors.Is(err, errCorrupt) {
		t.Error("the mark is not found")
	}
	if errors.Is(err, fs.ErrNotExist) {
		t.Error("an error is one that it was not marked with")
	}
	if got := err.Error(); got != "file x: block 7" {
		t.Errorf("text %q", got)
	}
	if got := fmt.Sprintf("%+v", errors.WithDetailf(errCorrupt, "offset %d", 3)); got != "corruption (offset 3)" {
		t.Errorf("with %%+v: %q", got)
	}
	if got := fmt.Sprintf("%-12v|", errors.WithDetailf(errCorrupt, "x")); got != "corruption  |" {
		t.Errorf("with %%v: %q", got)
	}
}

func TestNilStaysNil(t *testing.T) {
	for name, err := range map[string]error{
		"Wrap": errors.Wrap(nil, "x"), "Wrapf": errors.Wrapf(nil, "x"), "WithStack": errors.WithStack(nil), "Mark": errors.Mark(nil, errCorrupt),
		"WithDetailf": errors.WithDetailf(nil, "x"), "WithHintf": errors.WithHintf(nil, "x"), "WithSafeDetails": errors.WithSafeDetails(nil, "x"),
		"CombineErrors": errors.CombineErrors(nil, nil), "WithSecondaryError": errors.WithSecondaryError(nil, errCorrupt), "Join": errors.Join(nil, nil),
		"UnwrapAll": errors.UnwrapAll(nil),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCombinedErrorsAreTheFirst(t *testing.T) {
	other := errors.New("other")
	if err := errors.CombineErrors(nil, other); err != other {
		t.Errorf("nil and other: %v", err)
	}
	err := errors.CombineErrors(errCorrupt, other)
	if !errors.Is(err, errCorrupt) || errors.Is(err, other) || err.Error() != "corruption" || fmt.Sprintf("%+v", err) != "corruption (secondary error: other)" {
		t.Errorf("both: %+v", err)
	}
}

func TestErrorsOfFilesAreRecognized(t *testing.T) {
	missing := errors.Wrap(&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, "load")
	if !oserror.IsNotExist(missing) || oserror.IsExist(missing) || oserror.IsPermission(missing) {
		t.Error("ENOENT")
	}
	if errors.UnwrapAll(missing) != error(syscall.ENOENT) {
		t.Errorf("innermost: %v", errors.UnwrapAll(missing))
	}
	if !oserror.IsNotExist(errors.Mark(errors.New("gone"), fs.ErrNotExist)) {
		t.Error("marked")
	}
	if !oserror.IsExist(&fs.PathError{Err: syscall.EEXIST}) || !oserror.IsPermission(&fs.PathError{Err: syscall.EACCES}) {
		t.Error("EEXIST, EACCES")
	}
}
