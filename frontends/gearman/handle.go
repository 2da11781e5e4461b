package gearman

import (
	"bytes"
	"math"
	"strconv"
)

// maxHandlePrefix leaves room for a colon and the 20 digits of the longest Seq in the 63 bytes that clients have for a
// handle.
const maxHandlePrefix = 63 - 1 - 20

// handles writes and reads job handles: prefix, colon, Seq in decimal. Every job of the broker has one, whatever the
// protocol it came from, and as no Seq is ever given twice, no handle is either.
type handles struct{ prefix string }

// newHandles makes the handles of a host; a prefix takes the place of the usual H:host.
func newHandles(prefix, host string) handles {
	if prefix == "" {
		prefix = "H:" + host
	}
	return handles{prefix: prefix[:min(len(prefix), maxHandlePrefix)] + ":"}
}

// add appends the handle of the job seq.
func (h handles) add(b []byte, seq uint64) []byte {
	return strconv.AppendUint(append(b, h.prefix...), seq, 10)
}

// parse finds the Seq in a handle; anything that add would not write is none.
func (h handles) parse(handle []byte) (seq uint64, ok bool) {
	digits, ok := bytes.CutPrefix(handle, []byte(h.prefix))
	if !ok || len(digits) == 0 || digits[0] == '0' {
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
