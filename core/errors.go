package core

import "errors"

// The kinds of refusal a front-end can meet; each has a row in every front-end's table of wire texts.
var (
	ErrNotFound   = errors.New("no such job")
	ErrNoQueue    = errors.New("no such queue")
	ErrDuplicate  = errors.New("a job with this id exists")
	ErrNotUnique  = errors.New("a live job holds this unique key")
	ErrNotLeased  = errors.New("job is not leased")
	ErrNotHolder  = errors.New("lease belongs to another client")
	ErrFinished   = errors.New("job is finished already")
	ErrFull       = errors.New("queue is full")
	ErrBusy       = errors.New("queue is in use")
	ErrInvalid    = errors.New("invalid operation")
	ErrDiskFull   = errors.New("disk is nearly full, no new jobs are taken")
	ErrStopped    = errors.New("store failed, no work is taken")
	ErrDraining   = errors.New("broker is draining, no new jobs are taken")
	ErrShutdown   = errors.New("broker is shutting down")
	ErrNoBatch    = errors.New("no such batch")
	ErrBatchState = errors.New("batch does not allow this now")
)

// Errors lists every kind, so that a front-end's test can prove its table complete.
var Errors = []error{
	ErrNotFound, ErrNoQueue, ErrDuplicate, ErrNotUnique, ErrNotLeased, ErrNotHolder, ErrFinished, ErrFull, ErrBusy,
	ErrInvalid, ErrDiskFull, ErrStopped, ErrDraining, ErrShutdown, ErrNoBatch, ErrBatchState,
}
