// Package errors has the functions of github.com/cockroachdb/errors that Pebble calls. The real package encodes errors for
// other processes and reports them to a service, which the broker does not do: it links protobuf and a lot of generated code,
// 1.4 MB of the program. Errors made here have no stack traces.
//
// Is, As and the rest follow the standard library's package of this name. Unlike the real package, Is does not compare texts:
// an error is only the target that it wraps, joins or is marked with.
package errors

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/redact"
)

// New makes an error of a text.
func New(text string) error { return errors.New(text) }

// Newf formats an error; %w wraps.
func Newf(format string, args ...any) error { return fmt.Errorf(format, args...) }

// Errorf is Newf.
func Errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }

// AssertionFailedf formats an error that only a bug can cause.
func AssertionFailedf(format string, args ...any) error { return fmt.Errorf(format, args...) }

// Is reports whether err is target, wraps it or is marked with it.
func Is(err, target error) bool { return errors.Is(err, target) }

// As finds the first error of target's type in the tree of err.
func As(err error, target any) bool { return errors.As(err, target) }

// Join makes one error of those that are not nil.
func Join(errs ...error) error { return errors.Join(errs...) }

// Safe marks a value that logs may show.
func Safe(v any) redact.SafeValue { return redact.Safe(v) }

// Wrap puts a text before that of err; nil stays nil.
func Wrap(err error, text string) error {
	if err == nil {
		return nil
	}
	return &wrapped{text: text + ": " + err.Error(), cause: err}
}

// Wrapf is Wrap with a formatted text.
func Wrapf(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return Wrap(err, fmt.Sprintf(format, args...))
}

// WithStack is err: errors have no stack traces.
func WithStack(err error) error { return err }

// WithDetailf adds a text that only %+v shows.
func WithDetailf(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &detailed{cause: err, detail: fmt.Sprintf(format, args...)}
}

// WithHintf is WithDetailf.
func WithHintf(err error, format string, args ...any) error { return WithDetailf(err, format, args...) }

// WithSafeDetails is WithDetailf.
func WithSafeDetails(err error, format string, args ...any) error {
	return WithDetailf(err, format, args...)
}

// WithSecondaryError keeps the text of another error as a detail of err.
func WithSecondaryError(err, other error) error {
	if err == nil || other == nil {
		return err
	}
	return WithDetailf(err, "secondary error: %v", other)
}

// CombineErrors is the first error with the second as a detail, or the one that is not nil.
func CombineErrors(err, other error) error {
	if err == nil {
		return other
	}
	return WithSecondaryError(err, other)
}

// Mark makes Is report that err is mark, beside what it already is.
func Mark(err, mark error) error {
	if err == nil {
		return nil
	}
	return &marked{cause: err, mark: mark}
}

// UnwrapAll is the innermost error that err wraps.
func UnwrapAll(err error) error {
	for {
		cause := errors.Unwrap(err)
		if cause == nil {
			return err
		}
		err = cause
	}
}

// wrapped is an error with a text before its cause's.
type wrapped struct {
	text  string
	cause error
}

func (e *wrapped) Error() string { return e.text }
func (e *wrapped) Unwrap() error { return e.cause }

// detailed is an error with a text that only %+v shows.
type detailed struct {
	cause  error
	detail string
}

func (e *detailed) Error() string { return e.cause.Error() }
func (e *detailed) Unwrap() error { return e.cause }

// Format implements fmt.Formatter.
func (e *detailed) Format(s fmt.State, verb rune) {
	if verb == 'v' && s.Flag('+') {
		_, _ = fmt.Fprintf(s, "%+v (%s)", e.cause, e.detail) // s is a buffer
		return
	}
	_, _ = fmt.Fprintf(s, fmt.FormatString(s, verb), e.cause) // s is a buffer
}

// marked is an error that counts as another one too.
type marked struct{ cause, mark error }

func (e *marked) Error() string        { return e.cause.Error() }
func (e *marked) Unwrap() error        { return e.cause }
func (e *marked) Is(target error) bool { return errors.Is(e.mark, target) }
