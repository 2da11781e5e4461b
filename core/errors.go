package core

import (
	"errors"
	"fmt"
)

// The reasons for which the core refuses an operation. Each has a row in every front-end's table of wire texts.
var (
	ErrNotFound   = errors.New("no such job")
	ErrNoQueue    = errors.New("no such queue")
	ErrDuplicate  = errors.New("a job with this id exists")
	ErrNotUnique  = errors.New("this unique key is held")
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
	ErrConflict   = errors.New("job has changed")
	ErrNoSchedule = errors.New("no such schedule")
	ErrNoLimit    = errors.New("no such limit")
	ErrConfigured = errors.New("set by the configuration file")

	// ErrForbidden is for wrappers of a Broker that check permissions; the core itself never returns it.
	ErrForbidden = errors.New("not allowed")

	// ErrHasDependents comes as a *DependentsError.
	ErrHasDependents = errors.New("other jobs wait for this one")
)

// ErrDamaged is an ErrInvalid: the operation needs a part of the job that the store can no longer read.
var ErrDamaged = fmt.Errorf("%w: what the store has of this job is damaged", ErrInvalid)

// ErrOutOfTurn is an ErrInvalid: LeaseJob names a job of an ordered queue that has to wait for earlier jobs.
var ErrOutOfTurn = fmt.Errorf("%w: earlier jobs of its key have not ended", ErrInvalid)

// KindOf returns the kind of an error; nil: it has none.
func KindOf(err error) error {
	for _, kind := range Errors {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return nil
}

// Errors lists every kind, so that a front-end's test can prove its table complete.
var Errors = []error{
	ErrNotFound, ErrNoQueue, ErrDuplicate, ErrNotUnique, ErrNotLeased, ErrNotHolder, ErrFinished, ErrFull, ErrBusy,
	ErrInvalid, ErrDiskFull, ErrStopped, ErrDraining, ErrShutdown, ErrNoBatch, ErrBatchState, ErrConflict,
	ErrHasDependents,
	ErrNoSchedule, ErrNoLimit, ErrConfigured, ErrForbidden,
}

// DiskFullError is ErrDiskFull with what was measured.
type DiskFullError struct {
	Free  uint64 // bytes
	Least uint64 // bytes of the setting min_free_disk
}

// Error implements error.
func (e *DiskFullError) Error() string {
	const mib = 1 << 20
	return fmt.Sprintf("%v: %.1f MiB are free, and min_free_disk is %.1f MiB", ErrDiskFull, float64(e.Free)/mib,
		float64(e.Least)/mib)
}

// Is reports that e is ErrDiskFull.
func (e *DiskFullError) Is(target error) bool { return target == ErrDiskFull }

// DependentsError is ErrHasDependents together with the jobs concerned.
type DependentsError struct {
	Seq       uint64 // of the job that cannot be cancelled
	Dependent uint64 // a job that waits for it
}

// Error implements error.
func (e *DependentsError) Error() string {
	return fmt.Sprintf("job %d: %v: job %d", e.Seq, ErrHasDependents, e.Dependent)
}

// Is reports that e is ErrHasDependents.
func (e *DependentsError) Is(target error) bool { return target == ErrHasDependents }
