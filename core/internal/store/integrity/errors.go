package integrity

import (
	"cmp"
	"errors"
	"fmt"

	"broker/core/internal/record"
)

// Reasons why a folder cannot be used as it is.
var (
	ErrNoStore = errors.New("there is no store in this folder")
	ErrInUse   = errors.New("store is in use by another process")
)

// DamageError means that data on disk is damaged.
type DamageError struct {
	Dir  string // the folder of the store; empty: not known
	Path string // the file, as far as known
	What string // what was being read
	Err  error
}

// Remedy is the advice for every kind of damage of the store in a folder.
func Remedy(dir string) string {
	return "restore the folder from a backup or an archive, or copy what can be read with " +
		"broker doctor --salvage NEW-FOLDER " + cmp.Or(dir, "FOLDER")
}

func (e *DamageError) Error() string {
	where := e.Path
	if where == "" {
		where = "a file of the store"
	}
	return fmt.Sprintf("%s is damaged or missing (%s: %v); %s", where, e.What, e.Err, Remedy(e.Dir))
}

func (e *DamageError) Unwrap() error { return e.Err }

// Damaged returns a *DamageError, unless err says that a newer broker wrote the file.
func Damaged(path, what string, err error) error {
	if errors.Is(err, record.ErrNewerFormat) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return &DamageError{Path: path, What: what, Err: err}
}
