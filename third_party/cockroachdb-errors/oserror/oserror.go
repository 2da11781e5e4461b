// Package oserror recognizes errors of files through all layers around them.
package oserror

import (
	"errors"
	"io/fs"
)

// The errors of package fs.
var (
	ErrInvalid    = fs.ErrInvalid
	ErrPermission = fs.ErrPermission
	ErrExist      = fs.ErrExist
	ErrNotExist   = fs.ErrNotExist
)

// IsPermission reports whether access was denied.
func IsPermission(err error) bool { return errors.Is(err, fs.ErrPermission) }

// IsExist reports whether a file exists already.
func IsExist(err error) bool { return errors.Is(err, fs.ErrExist) }

// IsNotExist reports whether a file does not exist.
func IsNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
