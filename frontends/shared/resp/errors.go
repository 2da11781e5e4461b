package resp

import (
	"cmp"
	"errors"

	"broker/core"
)

// wireErrors has the error lines that are the same in all front-ends. Redis clients know the first words: MISCONF and
// OOM mean that the server cannot write, and BUSY that the client should retry.
var wireErrors = map[error]string{
	core.ErrNotFound:      "ERR no such job",
	core.ErrNoQueue:       "ERR no such queue",
	core.ErrNotUnique:     "ERR a live job of the queue holds this unique key",
	core.ErrFull:          "OOM the queue is full",
	core.ErrInvalid:       "ERR the broker cannot keep such a job",
	core.ErrDiskFull:      "OOM the disk is nearly full, no new jobs are accepted",
	core.ErrStopped:       "MISCONF the store failed, no changes are accepted",
	core.ErrDraining:      "BUSY the broker is draining, no new jobs are accepted",
	core.ErrShutdown:      "LOADING the broker is shutting down",
	core.ErrNoBatch:       "ERR no such batch",
	core.ErrBatchState:    "ERR the batch does not allow this now",
	core.ErrConflict:      "BUSY the job is changed by another client, try again",
	core.ErrHasDependents: "ERR other jobs wait for this one",
	core.ErrForbidden:     "NOPERM this user has no permissions to do this",
	core.ErrNoLimit:       "ERR no such limit",
	core.ErrNoSchedule:    "ERR no such schedule",
	core.ErrConfigured:    "ERR set by the configuration file",
}

// ErrorText is the error line of an error, without its first byte and its end. own are the lines of the front-end, by
// kinds of the core or errors of its own.
func ErrorText(own map[error]string, err error) string {
	for kind, text := range own { // at most one matches
		if errors.Is(err, kind) {
			return text
		}
	}
	return cmp.Or(wireErrors[core.KindOf(err)], "ERR internal error")
}
