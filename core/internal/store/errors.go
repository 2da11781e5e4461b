package store

import (
	"errors"

	"broker/core/internal/record"
	"broker/core/internal/store/integrity"
)

// Errors that callers distinguish with errors.Is. A failed store returns errors that wrap core.ErrStopped.
var (
	ErrMissing     = errors.New("not in the store")
	ErrHalfCopy    = errors.New("this is left from a copy of a store that was interrupted; make another copy")
	ErrReadOnly    = errors.New("store is open for reading only")
	ErrClosed      = errors.New("store is closed")
	ErrSequence    = errors.New("entry does not follow the last one")
	ErrDiverged    = errors.New("store has not the same history as the replicated log")
	ErrBatchSize   = errors.New("batch is too large for one commit")
	ErrNoStore     = integrity.ErrNoStore
	ErrInUse       = integrity.ErrInUse
	ErrNewerFormat = record.ErrNewerFormat
)

// DamageError means that data on disk is damaged.
type DamageError = integrity.DamageError
