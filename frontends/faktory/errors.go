package faktory

import (
	"cmp"
	"strings"

	"github.com/tidwall/redcon"

	"broker/core"
)

// wireErrors maps errors of the core to error codes and texts. NAME stands for the name in the request. Clients raise
// an exception on ERR and return any other code to their program.
var wireErrors = map[error]string{
	core.ErrNotFound:      "ERR Job not found NAME",
	core.ErrNotLeased:     "ERR Job not found NAME", // the reference server only searches its reservations
	core.ErrNotHolder:     "ERR Job not found NAME",
	core.ErrFinished:      "ERR Job not found NAME",
	core.ErrDuplicate:     "ERR a different job with the jid NAME exists",
	core.ErrNotUnique:     "NOTUNIQUE Job not unique",
	core.ErrNoQueue:       "ERR no such queue NAME",
	core.ErrFull:          "ERR queue NAME is full",
	core.ErrBusy:          "ERR connection or queue is in use",
	core.ErrInvalid:       "ERR invalid job or command NAME",
	core.ErrDiskFull:      "ERR disk is nearly full, no new jobs are taken",
	core.ErrStopped:       "ERR storage has failed, no work is taken",
	core.ErrDraining:      "ERR broker is draining, no new jobs are taken",
	core.ErrShutdown:      "ERR shutdown in progress",
	core.ErrNoBatch:       "ERR " + noSuchBatch,
	core.ErrBatchState:    "ERR batch NAME does not allow this any more",
	core.ErrConflict:      "ERR job NAME has changed",
	core.ErrHasDependents: "ERR other jobs wait for job NAME",
	core.ErrNoSchedule:    "ERR no such schedule NAME",
	core.ErrForbidden:     forbidden,
	core.ErrNoLimit:       "ERR no such limit NAME",
	core.ErrConfigured:    "ERR NAME is set by the configuration file",
}

// noSuchBatch contains the words twice, once capitalized: clients of the paid edition search for "No such batch".
const noSuchBatch = "no such batch NAME: No such batch is known here"

// forbidden is the answer to a request that the client's principal may not make.
const forbidden = "ERR not allowed"

// unknownError replaces errors that are not in the table, so that clients see no internals.
const unknownError = "ERR internal error"

// errorText is the code and text for an error.
func errorText(err error, name string) string {
	return withName(cmp.Or(wireErrors[core.KindOf(err)], unknownError), name)
}

// withName fills in NAME, or removes it if name is empty.
func withName(text, name string) string {
	if name == "" {
		return strings.ReplaceAll(text, " NAME", "")
	}
	return strings.ReplaceAll(text, "NAME", name)
}

// appendRefusal appends an ERR reply. The text is cut to maxEcho, since it may repeat the request.
func appendRefusal(b []byte, text string) []byte {
	return redcon.AppendError(b, "ERR "+core.CutText(text, maxEcho))
}

// maxEcho bounds the text of an error, in bytes.
const maxEcho = 4096
