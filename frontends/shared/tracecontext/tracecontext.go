// Package tracecontext reads W3C trace contexts: the values of the headers traceparent and tracestate, which clients
// send with their jobs. core.Job.Trace keeps both in one string:
//
//	Trace:       traceparent [space tracestate]
//	traceparent: version-traceid-parentid-flags, in lower-case hexadecimal
//
// Invalid values are ignored, as the W3C specification requires. A job is never refused for them.
package tracecontext

import (
	"encoding/hex"
	"strings"
)

// Sizes of values, in bytes. A traceparent of a later version may be longer. Values above the limits are invalid.
const (
	parentBytes    = 55
	maxParentBytes = 128
	maxStateBytes  = 512
)

// sampled is the flag that says that the caller records the trace.
const sampled = 1

// Context is a parsed traceparent.
type Context struct {
	TraceID [16]byte
	SpanID  [8]byte // of the caller
	Sampled bool
}

// Parse reads the traceparent at the front of a trace.
func Parse(trace string) (c Context, ok bool) {
	s, _ := Split(trace)
	if len(s) < parentBytes || len(s) > maxParentBytes || s[2] != '-' || s[35] != '-' || s[52] != '-' ||
		len(s) > parentBytes && s[parentBytes] != '-' {
		return c, false
	}
	var version, flags [1]byte
	if !decode(version[:], s[:2]) || !decode(c.TraceID[:], s[3:35]) || !decode(c.SpanID[:], s[36:52]) ||
		!decode(flags[:], s[53:55]) ||
		version[0] == 0xff || version[0] == 0 && len(s) > parentBytes || !printable(s) {
		return c, false
	}
	c.Sampled = flags[0]&sampled != 0
	return c, c.TraceID != [16]byte{} && c.SpanID != [8]byte{}
}

// decode reads lower-case hexadecimal digits.
func decode(into []byte, digits string) bool {
	if strings.ContainsAny(digits, "ABCDEF") {
		return false
	}
	_, err := hex.Decode(into, []byte(digits))
	return err == nil
}

// Join makes a trace of the values of the two headers. It is empty if parent is invalid; an invalid state is left out.
func Join(parent, state string) string {
	if parent == "" {
		return ""
	}
	if _, ok := Parse(parent); !ok || strings.Contains(parent, " ") {
		return ""
	}
	state = strings.Trim(state, " \t")
	if state == "" || len(state) > maxStateBytes || !printable(state) {
		return parent
	}
	return parent + " " + state
}

// printable reports whether s consists of printable ASCII characters, which a header may contain.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// Split returns the values of the two headers.
func Split(trace string) (parent, state string) {
	parent, state, _ = strings.Cut(trace, " ")
	return parent, state
}

// TraceID is the id of a trace, in hexadecimal; empty if there is no trace.
func TraceID(trace string) string {
	c, ok := Parse(trace)
	if !ok {
		return ""
	}
	return hex.EncodeToString(c.TraceID[:])
}
