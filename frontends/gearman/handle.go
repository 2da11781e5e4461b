package gearman

import (
	"bytes"
	"math"
	"strconv"
)

// maxHandleBytes is the room that clients have for a handle.
const maxHandleBytes = 63

// handles writes and reads job handles: prefix, colon, Seq in decimal. Every job of the broker has one, whatever the
// protocol it came from, and as no Seq is ever given twice, no handle is either: where they would be too long together it
// is the prefix that loses its end.
type handles struct{ prefix string } // with its colon

// newHandles makes the handles of a host; a prefix takes the place of the usual H:host.
func newHandles(prefix, host string) handles {
	if prefix == "" {
		prefix = "H:" + host
	}
	return handles{prefix: prefix[:min(len(prefix), maxHandleBytes-len(":1"))] + ":"}
}

// add appends the handle of the job seq.
func (h handles) add(b []byte, seq uint64) []byte {
	colon := len(b) + len(h.prefix) - 1
	b = strconv.AppendUint(append(b, h.prefix...), seq, 10)
	if over := len(b) - (colon + 1 - len(h.prefix)) - maxHandleBytes; over > 0 {
		b = append(b[:colon-over], b[colon:]...)
	}
	return b
}

// parse finds the Seq in a handle; anything that add would not write is none.
func (h handles) parse(handle []byte) (seq uint64, ok bool) {
	digits, ok := bytes.CutPrefix(handle, []byte(h.prefix))
	if !ok {
		digits, ok = h.cutOff(handle)
	}
	if !ok || len(handle) > maxHandleBytes || len(digits) == 0 || digits[0] == '0' {
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

// cutOff finds the digits in a handle whose prefix has lost its end.
func (h handles) cutOff(handle []byte) (digits []byte, ok bool) {
	colon := bytes.LastIndexByte(handle, ':')
	if len(handle) != maxHandleBytes || colon < 0 || colon >= len(h.prefix)-1 || string(handle[:colon]) != h.prefix[:colon] {
		return nil, false
	}
	return handle[colon+1:], true
}
