package store

import (
	"errors"
	"fmt"
)

// What callers tell apart with errors.Is. A damaged store is a *DamageError, a failed one wraps core.ErrStopped.
var (
	ErrMissing     = errors.New("not in the store")
	ErrNoStore     = errors.New("there is no store in this folder")
	ErrHalfCopy    = errors.New("this is left from a copy of a store that was broken off; make another copy")
	ErrInUse       = errors.New("store is in use by another process")
	ErrNewerFormat = errors.New("written by a newer version of the broker")
	ErrReadOnly    = errors.New("store is open for reading only")
	ErrClosed      = errors.New("store is closed")
	ErrBatchSize   = errors.New("batch is too large for one commit")
)

// DamageError says that something on disk is not as it was written.
type DamageError struct {
	Path string // the file, as far as known
	What string // what was being read
	Err  error
}

// remedy is what a person can do about every kind of damage.
const remedy = "restore the folder from a backup, or move it away to start with an empty store"

func (e *DamageError) Error() string {
	where := e.Path
	if where == "" {
		where = "a file of the store"
	}
	return fmt.Sprintf("%s is damaged or missing (%s: %v); %s", where, e.What, e.Err, remedy)
}

func (e *DamageError) Unwrap() error { return e.Err }
