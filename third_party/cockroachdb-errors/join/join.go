// Package join makes one error of several.
package join

import "errors"

// Join makes one error of those that are not nil.
func Join(errs ...error) error { return errors.Join(errs...) }
