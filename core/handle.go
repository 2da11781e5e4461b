package core

import (
	"bytes"
	"math"
	"strconv"
)

// MaxHandleBytes is the length of the longest job handle that clients can store.
const MaxHandleBytes = 63

// HandleFormat writes and parses job handles. A handle consists of the prefix of this broker, a colon, and the Seq of
// the job in decimal. Every job has a handle, and like a Seq it is never reused. If a handle would be too long, the
// prefix is shortened at its end; the digits are never cut. The zero value has the prefix "H:".
type HandleFormat struct{ prefix string } // with its colon

// NewHandleFormat returns the format of handles that start with prefix, usually "H:" and the host name.
func NewHandleFormat(prefix string) HandleFormat {
	return HandleFormat{prefix: prefix[:min(len(prefix), MaxHandleBytes-len(":1"))] + ":"}
}

// head returns the prefix with its colon.
func (h HandleFormat) head() string {
	if h.prefix == "" {
		return "H::"
	}
	return h.prefix
}

// Append appends the handle of the job seq to b.
func (h HandleFormat) Append(b []byte, seq uint64) []byte {
	head := h.head()
	colon := len(b) + len(head) - 1
	b = strconv.AppendUint(append(b, head...), seq, 10)
	if over := len(b) - (colon + 1 - len(head)) - MaxHandleBytes; over > 0 {
		b = append(b[:colon-over], b[colon:]...)
	}
	return b
}

// Parse returns the Seq in a handle. It refuses anything that Append would not write, such as handles of another host.
func (h HandleFormat) Parse(handle []byte) (seq uint64, ok bool) {
	digits, ok := bytes.CutPrefix(handle, []byte(h.head()))
	if !ok {
		digits, ok = h.cutShortened(handle)
	}
	if !ok || len(handle) > MaxHandleBytes || len(digits) == 0 || digits[0] == '0' {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' || seq > math.MaxUint64/10 {
			return 0, false
		}
		next := seq*10 + uint64(c-'0')
		if next < seq {
			return 0, false
		}
		seq = next
	}
	return seq, true
}

// cutShortened returns the digits of a handle with a shortened prefix.
func (h HandleFormat) cutShortened(handle []byte) (digits []byte, ok bool) {
	head := h.head()
	colon := bytes.LastIndexByte(handle, ':')
	if len(handle) != MaxHandleBytes || colon < 0 || colon >= len(head)-1 || string(handle[:colon]) != head[:colon] {
		return nil, false
	}
	return handle[colon+1:], true
}
