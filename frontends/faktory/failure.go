package faktory

import (
	"math"
	"strings"
	"time"

	"broker/core"
)

// pushedFailure is the failure in a pushed job. A job has one if it comes from another server, where it has already
// failed.
type pushedFailure struct {
	failedAt              []byte // decoded; nil if absent
	retryCount, remaining int64  // within 32 bits

	errType, message []byte   // decoded; nil if absent
	backtrace        [][]byte // at most maxBacktrace lines as sent; views of the object
}

// read parses the object and checks its members like the reference server. It returns false for a value of the wrong
// type.
func (f *pushedFailure) read(raw []byte) bool {
	s := scanner{data: raw}
	return s.members(0, func(name, value []byte) bool {
		known := foldedName(name, failureMembers[:])
		if value[0] == 'n' {
			return true
		}
		switch known {
		case "failed_at":
			return setText(&f.failedAt, value)
		case "message":
			return setText(&f.message, value)
		case "errtype":
			return setText(&f.errType, value)
		case "next_at":
			return value[0] == '"'
		case "backtrace":
			f.backtrace = nil
			lines := scanner{data: value}
			return lines.elements(0, func(line []byte) bool {
				if line[0] == '"' && len(f.backtrace) < maxBacktrace {
					f.backtrace = append(f.backtrace, line)
				}
				return line[0] == '"' || line[0] == 'n'
			})
		case "retry_count":
			return setCount(&f.retryCount, value)
		case "remaining":
			return setCount(&f.remaining, value)
		}
		return true
	})
}

// failureMembers are matched without regard to case, as in the reference server.
var failureMembers = [...]string{
	"failed_at", "next_at", "message", "errtype", "backtrace", "retry_count", "remaining",
}

// setCount is setInteger with a result clamped to 32 bits, so that the sum of two counts does not overflow.
func setCount(dst *int64, value []byte) bool {
	ok := setInteger(dst, value)
	*dst = min(max(*dst, math.MinInt32), math.MaxInt32)
	return ok
}

// failure is the failure for the core, cut to the limits. It shares no memory with the request line.
func (f *pushedFailure) failure() *core.Failure {
	at, err := time.Parse(time.RFC3339Nano, string(f.failedAt))
	c := &core.Failure{Type: cutText(string(f.errType), maxErrType), Message: cutText(string(f.message), maxMessage)}
	if err == nil {
		c.FailedAt = core.InstantOf(at)
	}
	for _, line := range f.backtrace {
		c.Backtrace = append(c.Backtrace, cutText(string(decodeString(line)), maxTraceLine))
	}
	return c
}

// cutText trims and cuts a text. The result shares no memory with it.
func cutText(text string, limit int) string {
	return strings.Clone(core.CutText(strings.TrimSpace(text), limit))
}
