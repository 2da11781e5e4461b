package beanstalk

import (
	"cmp"

	"broker/core"
)

// Replies without arguments.
const (
	badFormat     = "BAD_FORMAT" + crlf
	unknown       = "UNKNOWN_COMMAND" + crlf
	outOfMemory   = "OUT_OF_MEMORY" + crlf
	internalError = "INTERNAL_ERROR" + crlf
	draining      = "DRAINING" + crlf
	notFound      = "NOT_FOUND" + crlf
	notIgnored    = "NOT_IGNORED" + crlf
	tooBig        = "JOB_TOO_BIG" + crlf
	expectedCRLF  = "EXPECTED_CRLF" + crlf
	deadlineSoon  = "DEADLINE_SOON" + crlf
	timedOut      = "TIMED_OUT" + crlf
	deleted       = "DELETED" + crlf
	released      = "RELEASED" + crlf
	buried        = "BURIED" + crlf
	touched       = "TOUCHED" + crlf
	kicked        = "KICKED" + crlf
	paused        = "PAUSED" + crlf
)

// wireErrors maps each error of the core to a reply. Clients only know the replies of the reference server.
var wireErrors = map[error]string{
	core.ErrNotFound:      notFound,
	core.ErrNoQueue:       notFound,
	core.ErrDuplicate:     internalError,
	core.ErrNotUnique:     outOfMemory,
	core.ErrNotLeased:     notFound,
	core.ErrNotHolder:     notFound,
	core.ErrFinished:      notFound,
	core.ErrFull:          outOfMemory,
	core.ErrBusy:          outOfMemory,
	core.ErrInvalid:       notFound,
	core.ErrDiskFull:      outOfMemory,
	core.ErrStopped:       internalError,
	core.ErrDraining:      draining,
	core.ErrShutdown:      draining,
	core.ErrNoBatch:       notFound,
	core.ErrBatchState:    notFound,
	core.ErrConflict:      notFound,
	core.ErrHasDependents: notFound,
	core.ErrNoSchedule:    notFound,
	core.ErrForbidden:     unknown,
	core.ErrNoLimit:       notFound,
	core.ErrConfigured:    outOfMemory,
}

// isNotFound reports whether a client takes err for a job that it does not have.
func isNotFound(err error) bool { return errorText(err, false) == notFound }

// errorText is the reply for err. Only put may get DRAINING.
func errorText(err error, put bool) string {
	text := cmp.Or(wireErrors[core.KindOf(err)], internalError)
	if text == draining && !put {
		return internalError
	}
	return text
}
