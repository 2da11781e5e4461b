package faktory

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"broker/core"
	"broker/frontends/shared/tracecontext"
)

// jobState is the part of a job's JSON that changes after submission.
type jobState struct {
	enqueuedAt core.Instant
	failure    *core.Failure // failure of the last attempt; nil: none
}

// appendJob writes a job as FETCH returns it: the members in the order of the reference server, then unknown members.
func (f *Frontend) appendJob(b []byte, job *core.Job, st jobState) []byte {
	at := readAttributes(job)
	b = append(b, '{')
	retry := at.retryOf(job)
	b = appendIntegerMember(b, "retry", retry)
	switch {
	case st.failure != nil && st.failure != job.Failure: // otherwise it is sent as it was pushed
		b = appendName(b, "failure")
		b = appendFailure(b, st.failure, retry, at.prior())
	case at.failure != nil:
		b = appendRawMember(b, "failure", at.failure)
	}
	note := encodingNote(job)
	b = f.appendCustom(b, job, at.custom, note)
	b = appendTextMember(b, "jid", job.Identity())
	queue, own := strings.CutPrefix(job.Queue, f.opts.Namespace)
	b = appendTextMember(b, "queue", queue)
	if own && job.Origin != core.Faktory && job.Type == job.Queue {
		b = appendTextMember(b, "jobtype", queue)
	} else {
		b = appendTextMember(b, "jobtype", job.Type)
	}
	if at.createdAt != nil {
		b = appendRawMember(b, "created_at", at.createdAt)
	} else if job.CreatedAt != 0 {
		b = appendInstantMember(b, "created_at", job.CreatedAt)
	}
	if st.enqueuedAt != 0 {
		b = appendInstantMember(b, "enqueued_at", st.enqueuedAt)
	}
	if at.at != nil {
		b = appendRawMember(b, "at", at.at)
	} else if job.ReadyAt != 0 {
		b = appendInstantMember(b, "at", job.ReadyAt)
	}
	b = appendName(b, "args")
	b = appendArgs(b, job, note)
	if at.reserveFor != nil {
		b = appendRawMember(b, "reserve_for", at.reserveFor)
	} else if s := job.LeaseFor / time.Second; job.Origin != core.Faktory && s > 0 {
		b = appendIntegerMember(b, "reserve_for", int64(s))
	}
	if at.backtrace != nil {
		b = appendRawMember(b, "backtrace", at.backtrace)
	}
	if len(at.rest) > 0 {
		b = append(append(b, ','), at.rest...)
	}
	return append(b, '}')
}

// attributes are the members of Job.Attributes, as appendAttributes wrote them.
type attributes struct {
	retry, failure, custom, createdAt, at, reserveFor, backtrace []byte

	rest []byte // unknown members, with the commas between them
}

// readAttributes parses the attributes of jobs from Faktory clients and of the broker's own jobs, which have the same
// form. Attributes of other front-ends are ignored.
func readAttributes(job *core.Job) (at attributes) {
	if len(job.Attributes) == 0 || job.Origin != core.Faktory && job.Origin != core.Internal {
		return at
	}
	s := scanner{data: job.Attributes}
	known := 1 // end of the known members
	s.members(0, func(name, value []byte) bool {
		switch string(name) {
		case "retry":
			at.retry = value
		case "failure":
			at.failure = value
		case "custom":
			at.custom = value
		case "created_at":
			at.createdAt = value
		case "at":
			at.at = value
		case "reserve_for":
			at.reserveFor = value
		case "backtrace":
			at.backtrace = value
		default: // this member and all that follow are unknown
			return false
		}
		known = s.pos
		return true
	})
	at.rest = bytes.TrimLeft(job.Attributes[known:len(job.Attributes)-1], ", ")
	return at
}

// retryOf is the number of retries: the client's value, or the equivalent of the job's policy.
func (at *attributes) retryOf(job *core.Job) int64 {
	if at.retry != nil {
		n, _ := integer(at.retry)
		return n
	}
	switch {
	case job.Origin == core.Faktory || job.Origin == core.Internal:
		return defaultRetry
	case job.MaxFails <= 1 && job.Exhausted == core.ExhaustedBury:
		return -1
	}
	return int64(max(job.MaxFails, 1)) - 1
}

// prior is the failure that the job was pushed with, if any.
func (at *attributes) prior() *pushedFailure {
	if at.failure == nil {
		return nil
	}
	f := new(pushedFailure)
	f.read(at.failure) // checked when it was pushed
	return f
}

// appendFailure writes the last failure. prior is the failure that the job was pushed with, if any; it counts as the
// first.
func appendFailure(b []byte, f *core.Failure, retry int64, prior *pushedFailure) []byte {
	count := int64(max(f.Count, 1)) - 1
	remaining := retry
	switch {
	case prior != nil && prior.remaining > 0:
		remaining = max(prior.remaining+prior.retryCount-count, 0)
	case prior != nil:
		remaining = prior.remaining
	case retry > 0:
		remaining = max(retry-count, 0)
	}
	b = append(b, '{')
	if prior != nil && len(prior.failedAt) > 0 {
		b = appendTextMember(b, "failed_at", prior.failedAt)
	} else {
		b = appendInstantMember(b, "failed_at", f.FailedAt)
	}
	if f.NextAt != 0 {
		b = appendInstantMember(b, "next_at", f.NextAt)
	}
	errtype, message := failureTexts(f)
	b = appendTextMember(b, "message", message)
	b = appendTextMember(b, "errtype", errtype)
	for i, line := range f.Backtrace {
		if i == 0 {
			b = append(appendName(b, "backtrace"), '[')
		} else {
			b = append(b, ',')
		}
		b = appendQuoted(b, line)
	}
	if len(f.Backtrace) > 0 {
		b = append(b, ']')
	}
	b = appendIntegerMember(b, "retry_count", count)
	b = appendIntegerMember(b, "remaining", remaining)
	return append(b, '}')
}

// failureTexts returns a failure's type and message. Workers of other protocols send bytes only, which become the
// message.
func failureTexts(f *core.Failure) (errtype, message string) {
	errtype, message = f.Type, f.Message
	if message == "" {
		message = core.CutText(string(f.Data), maxMessage)
	}
	if errtype == "" {
		errtype = "unknown"
	}
	if message == "" {
		message = "unknown"
	}
	return errtype, message
}

// appendCustom writes the custom object with the broker's own members added; nothing if it is empty.
func (f *Frontend) appendCustom(b []byte, job *core.Job, custom []byte, note string) []byte {
	trace := job.Trace
	if job.Origin == core.Faktory || job.Origin == core.Internal {
		trace = "" // custom contains it already
	}
	if len(custom) == 0 && note == "" && job.CallbackFor == 0 && trace == "" {
		return b
	}
	b = appendName(b, "custom")
	if len(custom) > 0 {
		b = append(b, custom[:len(custom)-1]...)
	} else {
		b = append(b, '{')
	}
	if job.CallbackFor != 0 {
		b = appendTextMember(b, "_bid", f.bids.format(job.CallbackFor))
	}
	if trace != "" {
		parent, state := tracecontext.Split(trace)
		b = appendTextMember(b, "traceparent", parent)
		if state != "" {
			b = appendTextMember(b, "tracestate", state)
		}
	}
	if note != "" {
		b = append(appendName(b, "broker"), '{')
		b = appendTextMember(b, "from", job.Origin.String())
		b = append(appendTextMember(b, "encoding", note), '}')
	}
	return append(b, '}')
}

// encodingNote names the encoding of args for a body that is not a list of arguments; empty for a list of arguments.
func encodingNote(job *core.Job) string {
	switch {
	case job.Format == core.Args:
		return ""
	case isArray(job.Body):
		return "json"
	case utf8.Valid(job.Body):
		return "text"
	}
	return "base64"
}

// appendArgs writes the arguments: the pushed array, byte for byte, or an array made from a raw body.
func appendArgs(b []byte, job *core.Job, note string) []byte {
	switch note {
	case "text":
		return append(appendQuoted(append(b, '['), job.Body), ']')
	case "base64":
		b = append(b, '[', '"')
		b = slices.Grow(b, base64.StdEncoding.EncodedLen(len(job.Body))+2)
		b = base64.StdEncoding.AppendEncode(b, job.Body)
		return append(b, '"', ']')
	}
	return append(b, job.Body...)
}

// isArray reports whether body is a JSON array.
func isArray(body []byte) bool {
	s := scanner{data: body}
	return s.space() == '[' && utf8.Valid(body) && s.value(1) != nil && s.atEnd()
}

// The following functions write one member, with a comma before it where needed.

func appendComma(b []byte) []byte {
	if last := b[len(b)-1]; last == '{' || last == '[' {
		return b
	}
	return append(b, ',')
}

func appendName(b []byte, name string) []byte {
	b = append(appendComma(b), '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

func appendTextMember[T string | []byte](b []byte, name string, value T) []byte {
	return appendQuoted(appendName(b, name), value)
}

func appendRawMember(b []byte, name string, value []byte) []byte {
	return append(appendName(b, name), value...)
}

func appendIntegerMember(b []byte, name string, value int64) []byte {
	return strconv.AppendInt(appendName(b, name), value, 10)
}

func appendInstantMember(b []byte, name string, at core.Instant) []byte {
	b = append(appendName(b, name), '"')
	return append(appendInstant(b, at), '"')
}

func appendInstant(b []byte, at core.Instant) []byte {
	return time.UnixMicro(int64(at)).UTC().AppendFormat(b, time.RFC3339Nano)
}
