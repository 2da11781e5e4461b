package gearman

import (
	"cmp"

	"broker/core"
)

// Codes of ERROR packets. QUEUE_ERROR also stands for errors of the broker that have no code.
const (
	codeCommand     = "INVALID_COMMAND"
	codeArguments   = "INVALID_ARGUMENTS"
	codeTooLarge    = "ARGUMENT_TOO_LARGE"
	codeQueue       = "QUEUE_ERROR"
	codeOption      = "UNKNOWN_OPTION"
	codeJobNotFound = "JOB_NOT_FOUND"
	codeForbidden   = "NOT_ALLOWED"
)

// wireError is the text of an ERROR packet.
type wireError struct{ code, message string }

// Errors that do not come from the broker.
var (
	errNoRequest     = wireError{codeCommand, "Command not expected"}
	errUniqueSize    = wireError{codeTooLarge, "Unique value too large"}
	errNameSize      = wireError{codeTooLarge, "Function name too large"}
	errFunctions     = wireError{codeTooLarge, "Too many functions"}
	errProgressSize  = wireError{codeTooLarge, "Status value too large"}
	errOption        = wireError{codeOption, "Server does not recognize given option"}
	errTime          = wireError{codeArguments, "Time given for the job is not valid"}
	errNoSuchResult  = wireError{codeJobNotFound, "Job given in work result not found"}
	errNoSuchData    = wireError{codeJobNotFound, "Job does not exist on server"}
	errNoSuchExcept  = wireError{codeJobNotFound, "An exception was received for a job that does not exist"}
	errForbidden     = wireError{codeForbidden, "Not allowed for this client"}
	errServerStopped = wireError{codeQueue, "Server has stopped taking work"}
)

// lineForbidden is errForbidden in the text protocol.
const lineForbidden = "ERR NOT_ALLOWED Not+allowed+for+this+client\r\n"

// wireErrors maps each error of the core to its ERROR packet and its line in the text protocol. The text of
// JOB_NOT_FOUND depends on the packet that names the job.
var wireErrors = map[error]struct {
	wireError
	line string
}{
	core.ErrNotFound:  {errNoSuchResult, "ERR UNKNOWN_JOB\r\n"},
	core.ErrNotLeased: {errNoSuchResult, "ERR UNKNOWN_JOB\r\n"},
	core.ErrNotHolder: {errNoSuchResult, "ERR UNKNOWN_JOB\r\n"},
	core.ErrFinished:  {errNoSuchResult, "ERR UNKNOWN_JOB\r\n"},
	core.ErrNoQueue:   {wireError{codeQueue, "Function not found"}, "ERR function not found\r\n"},
	core.ErrBusy: {
		wireError{codeQueue, "Function is in use"},
		"ERR there are still connected workers or executing clients\r\n",
	},
	core.ErrFull:      {wireError{codeQueue, "Job queue is full"}, "ERR QUEUE_ERROR Job+queue+is+full\r\n"},
	core.ErrDuplicate: {wireError{codeQueue, "Job exists already"}, "ERR QUEUE_ERROR Job+exists+already\r\n"},
	core.ErrNotUnique: {wireError{codeQueue, "Unique value is in use"}, "ERR QUEUE_ERROR Unique+value+is+in+use\r\n"},
	core.ErrInvalid: {
		wireError{codeArguments, "Job is not valid"},
		"ERR INVALID_ARGUMENTS Arguments+are+not+valid\r\n",
	},
	core.ErrDiskFull: {
		wireError{codeQueue, "Server disk is nearly full, no new jobs are taken"},
		"ERR QUEUE_ERROR Server+disk+is+nearly+full\r\n",
	},
	core.ErrStopped:    {errServerStopped, "ERR QUEUE_ERROR Server+has+stopped+taking+work\r\n"},
	core.ErrDraining:   {wireError{codeQueue, "Server is draining"}, "ERR QUEUE_ERROR Server+is+draining\r\n"},
	core.ErrShutdown:   {wireError{codeQueue, "Server is shutting down"}, "ERR QUEUE_ERROR Server+is+shutting+down\r\n"},
	core.ErrNoBatch:    {wireError{codeQueue, "Batch not found"}, "ERR QUEUE_ERROR Batch+not+found\r\n"},
	core.ErrBatchState: {wireError{codeQueue, "Batch is closed"}, "ERR QUEUE_ERROR Batch+is+closed\r\n"},
	core.ErrConflict:   {wireError{codeQueue, "Job has changed"}, "ERR QUEUE_ERROR Job+has+changed\r\n"},
	core.ErrHasDependents: {
		wireError{codeQueue, "Other jobs wait for this job"},
		"ERR QUEUE_ERROR Other+jobs+wait+for+this+job\r\n",
	},
	core.ErrNoSchedule: {wireError{codeQueue, "Schedule not found"}, "ERR QUEUE_ERROR Schedule+not+found\r\n"},
	core.ErrForbidden:  {errForbidden, lineForbidden},
	core.ErrNoLimit:    {wireError{codeQueue, "Limit not found"}, "ERR QUEUE_ERROR Limit+not+found\r\n"},
	core.ErrConfigured: {
		wireError{codeQueue, "Set by the configuration file"},
		"ERR QUEUE_ERROR Set+by+the+configuration+file\r\n",
	},
}

// packetError is the ERROR packet for an error of the broker. notFound is the error of this packet type for an unknown
// job; nil for a packet without a job.
func packetError(err error, notFound *wireError) wireError {
	row, known := wireErrors[core.KindOf(err)]
	switch {
	case !known:
		return wireError{codeQueue, "Server error"}
	case row.code == codeJobNotFound && notFound != nil:
		return *notFound
	}
	return row.wireError
}

// lineError is the line for an error of the broker.
func lineError(err error) string {
	return cmp.Or(wireErrors[core.KindOf(err)].line, "ERR QUEUE_ERROR Server+error\r\n")
}
