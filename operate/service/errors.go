package service

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"broker/core"
)

// Code names an error for programs. Codes are part of the API and do not change.
type Code string

// The codes of errors.
const (
	CodeInvalid           Code = "invalid_request"
	CodeForbidden         Code = "forbidden"
	CodeJobNotFound       Code = "job_not_found"
	CodeQueueNotFound     Code = "queue_not_found"
	CodeBatchNotFound     Code = "batch_not_found"
	CodeWorkerNotFound    Code = "worker_not_found"
	CodeScheduleNotFound  Code = "schedule_not_found"
	CodeLimitNotFound     Code = "limit_not_found"
	CodeOperationNotFound Code = "operation_not_found"
	CodeMarkNotFound      Code = "mark_not_found"
	CodeNodeNotFound      Code = "node_not_found"
	CodeDuplicate         Code = "duplicate_id"
	CodeNotUnique         Code = "not_unique"
	CodeLeaseLost         Code = "lease_lost"
	CodeBadLease          Code = "invalid_lease"
	CodeNotLeased         Code = "job_not_leased"
	CodeFinished          Code = "job_finished"
	CodeState             Code = "wrong_state"
	CodeConflict          Code = "job_changed"
	CodeNoUndo            Code = "cannot_undo"
	CodeHasDependents     Code = "has_dependents"
	CodeConfigured        Code = "set_by_configuration"
	CodeQueueFull         Code = "queue_full"
	CodeQueueBusy         Code = "queue_in_use"
	CodeBatchState        Code = "batch_closed" // the batch is committed, as the API says elsewhere
	CodeDiskFull          Code = "disk_full"
	CodeStoreFailed       Code = "store_failed"
	CodeDraining          Code = "draining"
	CodeShutdown          Code = "shutting_down"
	CodeCommitTimeout     Code = "commit_timeout"
	CodeOutcomeUnknown    Code = "outcome_unknown"
	CodeKeyReused         Code = "idempotency_key_reused"
	CodeKeyInUse          Code = "idempotency_key_in_use"
	CodeUnsupported       Code = "not_available"
	CodeExists            Code = "already_exists"
	CodeClusterRefused    Code = "cluster_refused" // a change of the cluster that is impossible now
	CodeNoLeader          Code = "no_leader"
	CodeTooMany           Code = "too_many"
	CodeTooLarge          Code = "body_too_large"
)

// Error is an error for the caller.
type Error struct {
	Code   Code
	Detail string // a sentence for people
	Field  string // the affected part of the input, such as jobs[3].queue; empty: all of it, if Code is CodeInvalid

	RetryAfter time.Duration // for CodeTooMany; zero: soon
}

func (e *Error) Error() string { return e.Detail }

// errCommitTimeout is the answer when the disk is too slow. The change is in memory and may still become durable.
var errCommitTimeout = &Error{
	Code: CodeCommitTimeout, Detail: "timed out waiting for the commit; the change may still apply",
}

// mendStore is what to do about a store that has failed.
const mendStore = "the broker's log says why; mend the disk and start the broker again"

// errNoLeader is the answer when the leader of the cluster has failed, there is no next one in time, and nothing was
// changed.
var errNoLeader = &Error{
	Code: CodeNoLeader, Detail: "the leader of the cluster does not answer; ask again",
}

// errOutcomeUnknown is the answer when the broker stops before it knows that a change is durable: in a cluster because
// no majority has confirmed it, otherwise because the store has failed. The change may still apply.
func errOutcomeUnknown(clustered bool) *Error {
	text := "outcome unknown: the store failed before it confirmed the change, which may still apply; " + mendStore
	if clustered {
		text = "outcome unknown: the leader of the cluster changed before a majority confirmed the change, which may still apply"
	}
	return &Error{Code: CodeOutcomeUnknown, Detail: text}
}

// errNotConfirmed is the answer to a read of what will never be known to be on disk.
func errNotConfirmed(clustered bool) *Error {
	if clustered {
		return &Error{
			Code:   CodeNoLeader,
			Detail: "the leader of the cluster changed before a majority confirmed what this would show; ask again",
		}
	}
	return &Error{
		Code:   CodeStoreFailed,
		Detail: "the store failed before it confirmed what this would show; " + mendStore,
	}
}

// mayApply reports whether the change may still apply although the caller sees an error.
func (e *Error) mayApply() bool { return e.Code == CodeCommitTimeout || e.Code == CodeOutcomeUnknown }

// invalid is the error for an invalid field.
func invalid(field, format string, args ...any) *Error {
	return &Error{Code: CodeInvalid, Field: field, Detail: fmt.Sprintf(format, args...)}
}

// Within puts the path of a part of the input in front of the field of an error about that part.
func Within(part string, err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Field == "" && e.Code != CodeInvalid {
		return err
	}
	placed := *e // the error may be shared
	if placed.Field = part; e.Field != "" {
		placed.Field += "." + e.Field
	}
	return &placed
}

// coreCodes maps the errors of the core to codes.
var coreCodes = map[error]Code{
	core.ErrNotFound:      CodeJobNotFound,
	core.ErrNoQueue:       CodeQueueNotFound,
	core.ErrDuplicate:     CodeDuplicate,
	core.ErrNotUnique:     CodeNotUnique,
	core.ErrNotLeased:     CodeNotLeased,
	core.ErrNotHolder:     CodeLeaseLost,
	core.ErrFinished:      CodeFinished,
	core.ErrFull:          CodeQueueFull,
	core.ErrBusy:          CodeQueueBusy,
	core.ErrInvalid:       CodeState,
	core.ErrDiskFull:      CodeDiskFull,
	core.ErrStopped:       CodeStoreFailed,
	core.ErrDraining:      CodeDraining,
	core.ErrShutdown:      CodeShutdown,
	core.ErrNoBatch:       CodeBatchNotFound,
	core.ErrBatchState:    CodeBatchState,
	core.ErrConflict:      CodeConflict,
	core.ErrHasDependents: CodeHasDependents,
	core.ErrForbidden:     CodeForbidden,
	core.ErrNoSchedule:    CodeScheduleNotFound,
	core.ErrNoLimit:       CodeLimitNotFound,
	core.ErrConfigured:    CodeConfigured,
}

// refusal is the Error for an error of the core.
func refusal(err error) error {
	code, known := coreCodes[core.KindOf(err)]
	switch {
	case !known:
		return err
	case code == CodeStoreFailed:
		return &Error{Code: code, Detail: err.Error() + "; " + mendStore}
	}
	// Only the cause is shown, because the code already says that the operation is invalid.
	return &Error{Code: code, Detail: strings.TrimPrefix(err.Error(), core.ErrInvalid.Error()+": ")}
}

// IsCode reports whether err is an Error with that code.
func IsCode(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// errWaitOver ends a wait after the caller's time limit.
var errWaitOver = errors.New("the wait is over")
