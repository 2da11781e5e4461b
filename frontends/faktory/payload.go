package faktory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// workUnit is a job in the form that a client sends. Its slices are parts of the request line or decoded copies. nil
// means that a member is absent or null, or empty where that is equivalent.
type workUnit struct {
	jid, queue, jobtype []byte // decoded
	createdAt, at       []byte // decoded

	args []byte // the array as sent

	retry      int64
	retrySet   bool
	reserveFor int64
	backtrace  int64

	failure []byte // the object as sent
	custom  []byte // the same; nil if it has no members
	unknown []member
	tooMany bool // more unknown members than maxUnknown
}

// member is an unknown member. It is stored and returned unchanged.
type member struct{ name, value []byte }

// maxUnknown is the maximum number of unknown members of a job.
const maxUnknown = 1000

var errTooMany = fmt.Errorf("jobs must not have more than %d unknown members", maxUnknown)

// defaultRetry is the number of retries of a job without the member retry.
const defaultRetry = 25

// knownMembers are the members that set knows. They are matched without regard to case, as in the reference server.
var knownMembers = [...]string{
	"jid", "queue", "jobtype", "args", "retry", "custom", "created_at", "at", "reserve_for", "backtrace", "failure",
	"enqueued_at",
}

// parseWorkUnit reads the argument of PUSH. The error is sent to the client.
func parseWorkUnit(arg []byte, u *workUnit) error {
	if !utf8.Valid(arg) {
		return errUTF8
	}
	s := scanner{data: arg}
	if s.space() == 'n' && s.word("null") && s.atEnd() {
		u.reset()
		return nil
	}
	s.pos = 0
	switch ok := u.scan(&s, 0); {
	case u.tooMany:
		return errTooMany
	case !ok || !s.atEnd():
		return explain(arg, &referenceJob{})
	}
	return nil
}

// workUnits reads the argument of PUSHB job by job, after newWorkUnits has checked all of it.
type workUnits struct {
	s    scanner
	over bool
}

// maxBulk is the maximum number of jobs in one PUSHB. It limits the reply, which names every refused job.
const maxBulk = 100_000

// newWorkUnits checks the whole argument. One invalid job makes the whole PUSHB fail. The error is sent to the client.
func newWorkUnits(arg []byte, u *workUnit) (workUnits, error) {
	if !utf8.Valid(arg) {
		return workUnits{}, errUTF8
	}
	r := workUnits{s: scanner{data: arg}}
	if r.s.space() == 'n' && r.s.word("null") && r.s.atEnd() {
		return workUnits{over: true}, nil
	}
	r.s.pos = 0
	u.reset()
	count := 0
	ok := r.s.elements(0, func(raw []byte) bool {
		count++
		e := scanner{data: raw}
		return count <= maxBulk && (raw[0] == 'n' || u.scan(&e, 1))
	})
	switch {
	case count > maxBulk:
		return workUnits{}, fmt.Errorf("more than %d jobs in one PUSHB", maxBulk)
	case u.tooMany:
		return workUnits{}, errTooMany
	case !ok || !r.s.atEnd():
		return workUnits{}, explain(arg, &[]referenceJob{})
	}
	r.s.pos = 0
	r.s.take('[')
	r.over = r.s.take(']')
	return r, nil
}

// next reads one job and returns false at the end. null is a job without members.
func (r *workUnits) next(u *workUnit) bool {
	if r.over {
		return false
	}
	if raw := r.s.value(1); raw[0] == 'n' {
		u.reset()
	} else {
		e := scanner{data: raw}
		u.scan(&e, 1)
	}
	r.over = r.s.take(']')
	if !r.over {
		r.s.take(',')
	}
	return true
}

// keep copies the rest of the argument, which is valid during Feed only.
func (r *workUnits) keep() {
	r.s = scanner{data: append([]byte(nil), r.s.data[r.s.pos:]...)}
}

// reset empties u and keeps its memory.
func (u *workUnit) reset() { *u = workUnit{unknown: u.unknown[:0], retry: defaultRetry} }

// scan reads an object in one pass. It returns false if the text is not a work unit.
func (u *workUnit) scan(s *scanner, depth int) bool {
	u.reset()
	if s.space() != '{' {
		return false
	}
	return s.members(depth, u.set)
}

// set stores a member. It returns false for a value of the wrong type.
func (u *workUnit) set(name, value []byte) bool {
	null := value[0] == 'n'
	switch string(name) {
	case "jid":
		return null || setText(&u.jid, value)
	case "queue":
		return null || setText(&u.queue, value)
	case "jobtype":
		return null || setText(&u.jobtype, value)
	case "created_at":
		return null || setText(&u.createdAt, value)
	case "at":
		return null || setText(&u.at, value)
	case "enqueued_at": // the server sets it
		return null || value[0] == '"'
	case "reserve_for":
		return null || setInteger(&u.reserveFor, value)
	case "backtrace":
		return null || setInteger(&u.backtrace, value)
	case "retry":
		u.retry, u.retrySet = defaultRetry, !null
		return null || setInteger(&u.retry, value)
	case "args":
		return setRaw(&u.args, value, '[')
	case "failure":
		return setRaw(&u.failure, value, '{') && (null || new(pushedFailure).read(value))
	case "custom":
		if !setRaw(&u.custom, value, '{') {
			return false
		}
		if inner := (scanner{data: value, pos: 1}); !null && inner.space() == '}' {
			u.custom = nil
		}
		return true
	}
	if known := foldedName(name, knownMembers[:]); known != "" {
		return u.set([]byte(known), value)
	}
	if u.tooMany = len(u.unknown) == maxUnknown; u.tooMany {
		return false
	}
	u.unknown = append(u.unknown, member{name, value})
	return true
}

// foldedName returns the known name that equals name without regard to case, or an empty string.
func foldedName(name []byte, known []string) string {
	for _, k := range known {
		if bytes.EqualFold(name, []byte(k)) {
			return k
		}
	}
	return ""
}

func setText(dst *[]byte, value []byte) bool {
	if value[0] != '"' {
		return false
	}
	*dst = decodeString(value)
	return true
}

func setInteger(dst *int64, value []byte) bool {
	if value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return false
	}
	n, ok := integer(value)
	*dst = n
	return ok
}

// setRaw stores a value that starts with open. null clears it.
func setRaw(dst *[]byte, value []byte, open byte) bool {
	switch value[0] {
	case open:
		*dst = value
	case 'n':
		*dst = nil
	default:
		return false
	}
	return true
}

// The types of the reference server. encoding/json decodes invalid jobs into them, only to get the error messages that
// clients know.
type (
	referenceJob struct {
		Retry      *int              `json:"retry"`
		Failure    *referenceFailure `json:"failure"`
		Custom     map[string]any    `json:"custom"`
		Jid        string            `json:"jid"`
		Queue      string            `json:"queue"`
		Type       string            `json:"jobtype"`
		CreatedAt  string            `json:"created_at"`
		EnqueuedAt string            `json:"enqueued_at"`
		At         string            `json:"at"`
		Args       []any             `json:"args"`
		ReserveFor int               `json:"reserve_for"`
		Backtrace  int               `json:"backtrace"`
	}
	referenceFailure struct {
		FailedAt       string   `json:"failed_at"`
		NextAt         string   `json:"next_at"`
		ErrorMessage   string   `json:"message"`
		ErrorType      string   `json:"errtype"`
		Backtrace      []string `json:"backtrace"`
		RetryCount     int      `json:"retry_count"`
		RetryRemaining int      `json:"remaining"`
	}
)

// Errors for jobs that encoding/json accepts, and for jobs that are too long to decode.
var (
	errUTF8  = errors.New("invalid JSON: invalid UTF-8")
	errShape = errors.New("invalid JSON: not a job")
)

// maxExplained is the longest text that explain decodes, in bytes. Decoding may need twenty times the memory of the
// text.
const maxExplained = 64 << 10

// explain returns the reference server's error for a text that the scanner has refused.
func explain(arg []byte, shape any) error {
	if len(arg) > maxExplained {
		return errShape
	}
	err := json.Unmarshal(arg, shape)
	if err == nil {
		return errShape
	}
	return fmt.Errorf("invalid JSON: %s", referenceTerms.Replace(err.Error()))
}

// referenceTerms replaces our type names with the type names of the reference server.
var referenceTerms = strings.NewReplacer(
	"faktory.referenceJob", "client.Job", "faktory.referenceFailure", "client.Failure",
	"referenceJob.", "Job.", "referenceFailure.", "Failure.",
	"faktory.mutation", "client.Operation", "faktory.jobFilter", "client.JobFilter", "faktory.target",
	"client.Structure",
	"mutation.", "Operation.", "jobFilter.", "JobFilter.",
	"faktory.batchDefinition", "client.Batch", "batchDefinition.", "Batch.",
	"faktory.hello", "client.ClientData", "hello.", "ClientData.",
)

// appendAttributes writes the members for which core.Job has no field, as an object in the order of a fetched job. It
// writes nothing if there are none. The object is stored, so the meaning of its members must never change.
func (u *workUnit) appendAttributes(b []byte) []byte {
	start := len(b)
	b = append(b, '{')
	if u.retrySet && u.retry != defaultRetry {
		b = appendIntegerMember(b, "retry", u.retry)
	}
	if u.failure != nil {
		b = appendRawMember(b, "failure", u.failure)
	}
	if u.custom != nil {
		b = appendRawMember(b, "custom", u.custom)
	}
	if len(u.createdAt) > 0 {
		b = appendTextMember(b, "created_at", u.createdAt)
	}
	if len(u.at) > 0 {
		b = appendTextMember(b, "at", u.at)
	}
	if u.reserveFor != 0 {
		b = appendIntegerMember(b, "reserve_for", u.reserveFor)
	}
	if u.backtrace != 0 {
		b = appendIntegerMember(b, "backtrace", u.backtrace)
	}
	for _, m := range u.unknown {
		b = appendQuoted(appendComma(b), m.name)
		b = append(append(b, ':'), m.value...)
	}
	if len(b) == start+1 {
		return b[:start]
	}
	return append(b, '}')
}
