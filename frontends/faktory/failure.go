package faktory

import "math"

// pushedFailure is the failure that a job is pushed with if it moves here from another server in the middle of its
// retries.
type pushedFailure struct {
	failedAt              []byte // decoded; nil if absent
	retryCount, remaining int64  // within 32 bits
}

// read parses the object and checks its members as the reference does. It returns false for a value of the wrong type.
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
		case "next_at", "message", "errtype":
			return value[0] == '"'
		case "backtrace":
			lines := scanner{data: value}
			return lines.elements(0, func(line []byte) bool { return line[0] == '"' || line[0] == 'n' })
		case "retry_count":
			return setCount(&f.retryCount, value)
		case "remaining":
			return setCount(&f.remaining, value)
		}
		return true
	})
}

// failureMembers are read in any case, as by the reference's decoder.
var failureMembers = [...]string{
	"failed_at", "next_at", "message", "errtype", "backtrace", "retry_count", "remaining",
}

// setCount is setInteger with a result that is cut to 32 bits, so that sums of two do not overflow.
func setCount(dst *int64, value []byte) bool {
	ok := setInteger(dst, value)
	*dst = min(max(*dst, math.MinInt32), math.MaxInt32)
	return ok
}
