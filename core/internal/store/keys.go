package store

import (
	"bytes"
	"encoding/binary"
)

// The first byte of every key. On disk; never changed.
const (
	spaceBody     = 'b'
	spaceDocument = 'd'
	spaceJob      = 'j'
	spaceMeta     = 'm'
	spaceVersion  = 'v'
)

// The last byte of the keys of a job, except that of the job itself, which has none. On disk; never changed. They sort
// after the job.
const (
	partJob     byte = 0
	partFailure byte = 'f'
	partOutcome byte = 'o'
	partStatus  byte = 's'

	// An entry of the timeline, in the body space: two bytes with its slot follow.
	partTimeline byte = 't'
)

// positionKey holds the position of the last entry. It is a metadata entry with a name that no caller uses, because a
// separate key space would cost a table with every flush.
var positionKey = []byte{spaceMeta, 0}

// clusterKey holds the id of the cluster that the store is part of, if it is part of one.
var clusterKey = []byte{spaceMeta, 1}

// isInternal reports whether a key of the metadata space is one of the two above.
func isInternal(key []byte) bool {
	return bytes.Equal(key, positionKey) || bytes.Equal(key, clusterKey)
}

// seqKeyBytes is the length of a space and a number.
const seqKeyBytes = 1 + 8

// slotBytes is the length of a slot at the end of a key.
const slotBytes = 2

// jobKey is large enough for every key with a number in it.
type jobKey [seqKeyBytes + 1 + slotBytes]byte

// of fills k with a key and returns the part of k that it occupies.
func (k *jobKey) of(space byte, seq uint64, part byte) []byte {
	k[0] = space
	binary.BigEndian.PutUint64(k[1:], seq)
	if part == partJob {
		return k[:seqKeyBytes]
	}
	k[seqKeyBytes] = part
	return k[:seqKeyBytes+1]
}

// slot fills k with the key of an entry of a timeline.
func (k *jobKey) slot(seq uint64, slot uint16) []byte {
	return binary.BigEndian.AppendUint16(k.of(spaceBody, seq, partTimeline), slot)
}

// parseKey splits a key of the job or body space.
func parseKey(key []byte) (seq uint64, part byte, ok bool) {
	if len(key) > seqKeyBytes {
		part = key[seqKeyBytes]
	}
	switch len(key) {
	case seqKeyBytes, seqKeyBytes + 1:
	case seqKeyBytes + 1 + slotBytes:
		if part != partTimeline {
			return 0, 0, false
		}
	default:
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(key[1:]), part, true
}

// appendMetaKey is the key of a metadata entry, or the lower bound of those that begin with name.
func appendMetaKey(dst []byte, name string) []byte { return append(append(dst, spaceMeta), name...) }

// appendDocumentKey is the key of a document, or the lower bound of those that begin with name.
func appendDocumentKey(dst []byte, name string) []byte {
	return append(append(dst, spaceDocument), name...)
}

// spaceEnd is the upper bound of the keys that begin with prefix, which must not consist of 0xff only.
func spaceEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := append([]byte(nil), prefix[:i+1]...)
			end[i]++
			return end
		}
	}
	return nil
}
