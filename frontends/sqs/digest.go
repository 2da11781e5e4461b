package sqs

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
)

// attribute is the stored form of a message attribute.
type attribute struct {
	Name   string `json:"n"`
	Type   string `json:"t"`
	Text   string `json:"s,omitempty"`
	Binary []byte `json:"b,omitempty"`
}

// isBinary reports whether the value is in Binary.
func (a *attribute) isBinary() bool { return strings.HasPrefix(a.Type, "Binary") }

// size is the part of the message size that the attribute uses.
func (a *attribute) size() int { return len(a.Name) + len(a.Type) + len(a.Text) + len(a.Binary) }

func digestOf(text string) string {
	sum := md5.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// digestAttributes is the digest of attributes; empty: none. The input contains for each attribute, in the order of the
// names,
//
//	length name length type kind length value
//
// where lengths have four bytes, big-endian, and kind is 1 for text and 2 for bytes.
func digestAttributes(all []attribute) string {
	if len(all) == 0 {
		return ""
	}
	sorted := slices.SortedFunc(slices.Values(all), func(a, b attribute) int { return strings.Compare(a.Name, b.Name) })
	h := md5.New()
	field := func(value string) {
		var length [4]byte
		binary.BigEndian.PutUint32(length[:], uint32(len(value)))
		h.Write(length[:])
		h.Write([]byte(value))
	}
	for _, a := range sorted {
		field(a.Name)
		field(a.Type)
		if a.isBinary() {
			h.Write([]byte{2})
			field(string(a.Binary))
		} else {
			h.Write([]byte{1})
			field(a.Text)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
