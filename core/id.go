package core

import (
	"encoding/binary"

	"github.com/google/uuid"
)

// Ids derived from job numbers. A job without a client's id has a UUIDv7 derived from its Seq and creation time, and a
// job whose id is not a UUIDv4 has a UUIDv4-shaped alias derived from its Seq. Both can be mapped back to the Seq, so
// they need no memory and no index. The Seq is scrambled so that the ids of consecutive jobs look different. Constant
// marks distinguish these ids from ids of clients. Clients store these ids, so the marks and the scrambling never
// change.
const (
	mintMark  = 0xadc      // 10 bits of mark in rand_a of a UUIDv7, above the 2 uppermost bits of the mixed Seq
	aliasHead = 0x5b1d9e37 // the first 32 bits of an alias
	aliasMid  = 0x41a6     // version 4 and 12 bits of mark
	aliasTail = 0x80c3     // variant and 14 bits of mark
)

// MintedID returns the id of the job seq: a UUID of version 7 with the time of its creation.
func MintedID(seq uint64, createdAt Instant) string {
	var u uuid.UUID
	m := mix(seq)
	binary.BigEndian.PutUint64(u[0:], uint64(createdAt/1000)<<16|0x7000|mintMark|m>>62)
	binary.BigEndian.PutUint64(u[8:], 0x8000000000000000|m&(1<<62-1))
	return u.String()
}

// ParseMintedID returns the Seq and the creation time in milliseconds of an id made by MintedID.
func ParseMintedID(id string) (seq uint64, createdMilli int64, ok bool) {
	u, ok := parseCanonical(id)
	if !ok {
		return 0, 0, false
	}
	hi, lo := binary.BigEndian.Uint64(u[0:]), binary.BigEndian.Uint64(u[8:])
	if hi&0xfffc != 0x7000|mintMark || lo>>62 != 0b10 {
		return 0, 0, false
	}
	return unmix(hi&3<<62 | lo&(1<<62-1)), int64(hi >> 16), true
}

// Alias returns a UUIDv4-shaped name of the job seq, for protocols that accept no other ids.
func Alias(seq uint64) string {
	var u uuid.UUID
	m := mix(seq)
	binary.BigEndian.PutUint32(u[0:], aliasHead)
	binary.BigEndian.PutUint16(u[4:], uint16(m>>48))
	binary.BigEndian.PutUint16(u[6:], aliasMid)
	binary.BigEndian.PutUint16(u[8:], aliasTail)
	binary.BigEndian.PutUint16(u[10:], uint16(m>>32))
	binary.BigEndian.PutUint32(u[12:], uint32(m))
	return u.String()
}

// ParseAlias finds the Seq in a text that Alias may have made.
func ParseAlias(id string) (seq uint64, ok bool) {
	u, ok := parseCanonical(id)
	if !ok || binary.BigEndian.Uint32(u[0:]) != aliasHead ||
		binary.BigEndian.Uint16(u[6:]) != aliasMid ||
		binary.BigEndian.Uint16(u[8:]) != aliasTail {
		return 0, false
	}
	m := uint64(binary.BigEndian.Uint16(u[4:]))<<48 | uint64(binary.BigEndian.Uint16(u[10:]))<<32 |
		uint64(binary.BigEndian.Uint32(u[12:]))
	return unmix(m), true
}

// IsUUIDv4 reports whether id is the canonical text of a version 4, RFC 4122 UUID.
func IsUUIDv4[T string | []byte](id T) bool {
	if len(id) != 36 || id[8] != '-' || id[13] != '-' || id[18] != '-' || id[23] != '-' {
		return false
	}
	digits := uint8(0)
	for i := range len(id) {
		digits += lowerHex[id[i]]
	}
	return digits == 32 && id[14] == '4' && (id[19] == '8' || id[19] == '9' || id[19] == 'a' || id[19] == 'b')
}

// lowerHex has a one for each digit.
var lowerHex = [256]uint8{
	'0': 1, '1': 1, '2': 1, '3': 1, '4': 1, '5': 1, '6': 1, '7': 1, '8': 1, '9': 1,
	'a': 1, 'b': 1, 'c': 1, 'd': 1, 'e': 1, 'f': 1,
}

// parseCanonical accepts only the 36-byte lower-case form, so that every id has one spelling.
func parseCanonical(id string) (uuid.UUID, bool) {
	if len(id) != 36 {
		return uuid.UUID{}, false
	}
	for i := range len(id) {
		if id[i] >= 'A' && id[i] <= 'F' {
			return uuid.UUID{}, false
		}
	}
	u, err := uuid.Parse(id)
	return u, err == nil
}

// mix is a bijection on 64-bit numbers (two multiply-and-xorshift rounds); unmix undoes it.
func mix(x uint64) uint64 {
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return x ^ x>>32
}

func unmix(x uint64) uint64 {
	const inverse = 0xcfee444d8b59a89b // of the factor above, modulo 2⁶⁴
	x ^= x >> 32
	x *= inverse
	x ^= x >> 32
	x *= inverse
	return x ^ x>>32
}
