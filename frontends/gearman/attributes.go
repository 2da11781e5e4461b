package gearman

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"broker/core"
)

// The unique key of a job, as it is stored: one byte for the protocol, so that clients of other protocols cannot use
// the same key, one byte for the kind, then the unique value.
const (
	keyUnique   = core.GearmanKey // + the client's unique
	keyWorkload = "\x02h"         // + SHA-256 of the workload, if the unique was -
	keyRouted   = "\x02f"         // + function, NUL, the client's unique, if several functions share the queue
)

// The attributes of a job, as they are stored: any number of
//
//	├─ tag ─┼─ length, uvarint ─┼─ bytes ─┤
const (
	attrReducer = 'r' // of SUBMIT_REDUCE_JOB
	attrUnique  = 'u' // a unique that the key does not contain: - with an empty workload
)

// uniqueByWorkload is the unique that coalesces jobs of the same function and workload.
const uniqueByWorkload = "-"

// appendKey appends the unique key of a submission; nothing if the job does not coalesce.
func appendKey(b []byte, n *name, unique, workload []byte) []byte {
	if len(unique) == 0 {
		return b
	}
	byWorkload := string(unique) == uniqueByWorkload
	switch {
	case byWorkload && len(workload) == 0:
		return b
	case byWorkload && n.routed:
		sum := sha256.New()
		sum.Write([]byte(n.function))
		sum.Write([]byte{0})
		sum.Write(workload)
		return sum.Sum(append(b, keyWorkload...))
	case byWorkload:
		sum := sha256.Sum256(workload)
		return append(append(b, keyWorkload...), sum[:]...)
	case n.routed:
		b = append(append(b, keyRouted...), n.function...)
		return append(append(b, 0), unique...)
	}
	return append(append(b, keyUnique...), unique...)
}

// uniqueOf is the unique that workers receive: the client's unique, or the id of a job from another protocol. A NUL in
// such an id would end the field, so it becomes %00.
func uniqueOf(j *core.Job) string {
	if j.Origin != core.Gearman {
		return strings.ReplaceAll(j.Identity(), "\x00", "%00")
	}
	key := j.UniqueKey
	switch {
	case strings.HasPrefix(key, keyUnique):
		return key[len(keyUnique):]
	case strings.HasPrefix(key, keyWorkload):
		return uniqueByWorkload
	case strings.HasPrefix(key, keyRouted):
		_, unique, _ := strings.Cut(key[len(keyRouted):], "\x00")
		return unique
	}
	return string(attribute(j.Attributes, attrUnique))
}

// reducerOf is the reducer of a job; empty if it has none.
func reducerOf(j *core.Job) []byte {
	if j.Origin != core.Gearman {
		return nil
	}
	return attribute(j.Attributes, attrReducer)
}

// addAttribute appends one attribute.
func addAttribute(b []byte, tag byte, value []byte) []byte {
	b = binary.AppendUvarint(append(b, tag), uint64(len(value)))
	return append(b, value...)
}

// attribute returns an attribute, nil if there is none or b is malformed.
func attribute(b []byte, tag byte) []byte {
	for len(b) > 1 {
		size, n := binary.Uvarint(b[1:])
		if n <= 0 || size > uint64(len(b)-1-n) {
			return nil
		}
		value := b[1+n : 1+n+int(size)]
		if b[0] == tag {
			return value
		}
		b = b[1+n+int(size):]
	}
	return nil
}
