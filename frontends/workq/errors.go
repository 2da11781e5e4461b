package workq

import (
	"cmp"

	"broker/core"
)

// Error replies with their line end. The reference server does not send the replies of the last group.
const (
	badCommand     = "-CLIENT-ERROR Unknown command" + crlf
	badFlags       = "-CLIENT-ERROR Invalid command flags" + crlf
	badArgs        = "-CLIENT-ERROR Invalid command args" + crlf
	badPayload     = "-CLIENT-ERROR Invalid payload size" + crlf
	badResult      = "-CLIENT-ERROR Invalid result size" + crlf
	badID          = "-CLIENT-ERROR Invalid ID" + crlf
	badName        = "-CLIENT-ERROR Invalid Name" + crlf
	badTTR         = "-CLIENT-ERROR Invalid TTR" + crlf
	badTTL         = "-CLIENT-ERROR Invalid TTL" + crlf
	badWait        = "-CLIENT-ERROR Invalid wait timeout" + crlf
	badTime        = "-CLIENT-ERROR Invalid Time" + crlf
	badPriority    = "-CLIENT-ERROR Invalid Priority" + crlf
	badMaxAttempts = "-CLIENT-ERROR Invalid Max Attempts" + crlf
	badMaxFails    = "-CLIENT-ERROR Invalid Max Fails" + crlf
	badOffset      = "-CLIENT-ERROR Invalid cursor offset" + crlf
	badLimit       = "-CLIENT-ERROR Invalid limit" + crlf

	notFound  = "-NOT-FOUND" + crlf
	timedOut  = "-TIMEOUT" + crlf
	duplicate = "-CLIENT-ERROR Duplicate job" + crlf
	hasResult = "-CLIENT-ERROR Duplicate result" + crlf

	badLineEnd    = "-CLIENT-ERROR Invalid line end" + crlf
	tooLong       = "-CLIENT-ERROR Command too long" + crlf
	badUnique     = "-CLIENT-ERROR Invalid Unique" + crlf
	badType       = "-CLIENT-ERROR Invalid Type" + crlf
	badAfter      = "-CLIENT-ERROR Invalid After" + crlf
	badParent     = "-CLIENT-ERROR Invalid Parent" + crlf
	unknownAfter  = "-CLIENT-ERROR After not found" + crlf
	unknownParent = "-CLIENT-ERROR Parent not found" + crlf
	internalError = "-SERVER-ERROR Internal error" + crlf
	storeFailed   = "-SERVER-ERROR Store failed" + crlf
	stopping      = "-SERVER-ERROR Shutting down" + crlf
)

// wireErrors maps each error of the core to its reply. A full queue and a full disk are server errors, so that clients
// try again later.
var wireErrors = map[error]string{
	core.ErrNotFound:      notFound,
	core.ErrNoQueue:       notFound,
	core.ErrDuplicate:     duplicate,
	core.ErrNotUnique:     "-CLIENT-ERROR Duplicate unique" + crlf,
	core.ErrNotLeased:     "-CLIENT-ERROR Job not leased" + crlf,
	core.ErrNotHolder:     "-CLIENT-ERROR Job leased by another" + crlf,
	core.ErrFinished:      hasResult,
	core.ErrFull:          "-SERVER-ERROR Queue full" + crlf,
	core.ErrBusy:          "-SERVER-ERROR Queue in use" + crlf,
	core.ErrInvalid:       "-CLIENT-ERROR Invalid operation" + crlf,
	core.ErrDiskFull:      "-SERVER-ERROR Disk full" + crlf,
	core.ErrStopped:       storeFailed,
	core.ErrDraining:      "-SERVER-ERROR Draining" + crlf,
	core.ErrShutdown:      stopping,
	core.ErrNoBatch:       "-CLIENT-ERROR Batch not found" + crlf,
	core.ErrBatchState:    "-CLIENT-ERROR Batch closed" + crlf,
	core.ErrConflict:      "-CLIENT-ERROR Job has changed" + crlf,
	core.ErrHasDependents: "-CLIENT-ERROR Other jobs wait for this one" + crlf,
	core.ErrNoSchedule:    "-CLIENT-ERROR Schedule not found" + crlf,
	core.ErrForbidden:     "-CLIENT-ERROR Not allowed" + crlf,
	core.ErrNoLimit:       "-CLIENT-ERROR Limit not found" + crlf,
	core.ErrConfigured:    "-CLIENT-ERROR Set by the configuration file" + crlf,
}

// errorText is the reply for err.
func errorText(err error) string { return cmp.Or(wireErrors[core.KindOf(err)], internalError) }
