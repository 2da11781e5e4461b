package store

import (
	"errors"

	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core/internal/store/integrity"
)

// Errors that callers distinguish with errors.Is. A failed store returns errors that wrap core.ErrStopped.
var (
	ErrMissing  = errors.New("not in the store")
	ErrHalfCopy = errors.New("this is left from a copy of a store that was interrupted; make another copy")
	ErrClosed   = errors.New("store is closed")
	ErrSequence = errors.New("entry does not follow the last one")
	ErrDiverged = errors.New("store has not the same history as the replicated log")
	ErrNoStore  = integrity.ErrNoStore
	ErrInUse    = integrity.ErrInUse
)

var (
	errReadOnly  = errors.New("store is open for reading only")
	errBatchSize = errors.New("batch is too large for one commit")
)

// DamageError means that data on disk is damaged.
type DamageError = integrity.DamageError

// Remedy is the advice for a damaged store in a folder.
func Remedy(dir string) string { return integrity.Remedy(dir, integrity.NewFolder(vfs.Default, dir)) }
