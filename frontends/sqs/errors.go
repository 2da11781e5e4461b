package sqs

import (
	"errors"
	"fmt"
	"net/http"

	"broker/core"
)

// errorKind is an error of SQS: its name in JSON, its code in Query (also in the header x-amzn-query-error), and its
// status.
type errorKind struct {
	name   string
	code   string
	status int
}

// Codes that differ between Query and JSON.
const legacy = "AWS.SimpleQueueService."

// The errors.
var (
	queueDoesNotExist    = &errorKind{"QueueDoesNotExist", legacy + "NonExistentQueue", 400}
	queueNameExists      = &errorKind{"QueueNameExists", "QueueAlreadyExists", 400}
	invalidAttributeName = &errorKind{"InvalidAttributeName", "InvalidAttributeName", 400}
	invalidAttribute     = &errorKind{"InvalidAttributeValue", "InvalidAttributeValue", 400}
	invalidParameter     = &errorKind{"InvalidParameterValueException", "InvalidParameterValue", 400}
	missingParameter     = &errorKind{"MissingRequiredParameterException", "MissingParameter", 400}
	invalidContents      = &errorKind{"InvalidMessageContents", "InvalidMessageContents", 400}
	invalidHandle        = &errorKind{"ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", 400}
	emptyBatch           = &errorKind{"EmptyBatchRequest", legacy + "EmptyBatchRequest", 400}
	tooManyEntries       = &errorKind{"TooManyEntriesInBatchRequest", legacy + "TooManyEntriesInBatchRequest", 400}
	idsNotDistinct       = &errorKind{"BatchEntryIdsNotDistinct", legacy + "BatchEntryIdsNotDistinct", 400}
	invalidEntryID       = &errorKind{"InvalidBatchEntryId", legacy + "InvalidBatchEntryId", 400}
	batchTooLong         = &errorKind{"BatchRequestTooLong", legacy + "BatchRequestTooLong", 400}
	resourceNotFound     = &errorKind{"ResourceNotFoundException", "ResourceNotFoundException", 404}
	overLimit            = &errorKind{"OverLimit", "OverLimit", 403}
	unsupported          = &errorKind{"UnsupportedOperation", legacy + "UnsupportedOperation", 400}
	unknownOperation     = &errorKind{"UnknownOperationException", "InvalidAction", 400}
	serialization        = &errorKind{"SerializationException", "MalformedInput", 400}
	requestTooLarge      = &errorKind{"RequestEntityTooLarge", "RequestEntityTooLarge", 413}

	missingToken   = &errorKind{"MissingAuthenticationToken", "MissingAuthenticationToken", 403}
	unknownKey     = &errorKind{"InvalidClientTokenId", "InvalidClientTokenId", 403}
	wrongSignature = &errorKind{"SignatureDoesNotMatch", "SignatureDoesNotMatch", 403}
	incomplete     = &errorKind{"IncompleteSignature", "IncompleteSignature", 403}
	accessDenied   = &errorKind{"AccessDenied", "AccessDenied", 403}
	throttled      = &errorKind{"RequestThrottled", "RequestThrottled", 429}

	internalError = &errorKind{"InternalFailure", "InternalFailure", 500}
	unavailable   = &errorKind{"ServiceUnavailable", "ServiceUnavailable", http.StatusServiceUnavailable}
)

// apiError is an error reply.
type apiError struct {
	kind *errorKind
	text string
}

// Error implements error.
func (e *apiError) Error() string { return e.kind.name + ": " + e.text }

// sender reports whether the error is the client's fault.
func (e *apiError) sender() bool { return e.kind.status < 500 }

func refuse(kind *errorKind, format string, args ...any) error {
	return &apiError{kind, fmt.Sprintf(format, args...)}
}

func missing(parameter string) error {
	return refuse(missingParameter, "The request must contain the parameter %s.", parameter)
}

func noQueue() error { return refuse(queueDoesNotExist, "The specified queue does not exist.") }

// noDenials is the error for a policy that denies something.
func noDenials() error {
	return refuse(unsupported,
		"A policy that denies is not supported: rights come from the roles of the broker's principals.")
}

// badValue is the error for an invalid parameter.
func badValue(value any, parameter, reason string) error {
	return refuse(invalidParameter, "Value %v for parameter %s is invalid. Reason: %s", value, parameter, reason)
}

// badAttribute is the error for an invalid queue attribute.
func badAttribute(name string) error {
	return refuse(invalidAttribute, "Invalid value for the parameter %s.", name)
}

// coreErrors maps the errors of the core to SQS errors. A test checks that it is complete.
var coreErrors = map[error]*errorKind{
	core.ErrNotFound:      invalidParameter,
	core.ErrNoQueue:       queueDoesNotExist,
	core.ErrDuplicate:     invalidParameter,
	core.ErrNotUnique:     invalidParameter,
	core.ErrNotLeased:     invalidParameter,
	core.ErrNotHolder:     invalidParameter,
	core.ErrFinished:      invalidParameter,
	core.ErrFull:          overLimit,
	core.ErrBusy:          unavailable,
	core.ErrInvalid:       invalidParameter,
	core.ErrDiskFull:      unavailable,
	core.ErrStopped:       unavailable,
	core.ErrDraining:      unavailable,
	core.ErrShutdown:      unavailable,
	core.ErrNoBatch:       invalidParameter,
	core.ErrBatchState:    invalidParameter,
	core.ErrConflict:      invalidParameter,
	core.ErrHasDependents: invalidParameter,
	core.ErrNoSchedule:    invalidParameter,
	core.ErrNoLimit:       invalidParameter,
	core.ErrConfigured:    accessDenied,
	core.ErrForbidden:     accessDenied,
}

// errorOf converts an error to an SQS error. An error that is not in the table is a fault of the broker, and its text
// is not shown.
func errorOf(err error) *apiError {
	var e *apiError
	if errors.As(err, &e) {
		return e
	}
	kind := core.KindOf(err)
	if reply := coreErrors[kind]; reply != nil {
		return &apiError{reply, kind.Error()}
	}
	return &apiError{internalError, "The request could not be served."}
}
