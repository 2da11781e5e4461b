package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"
)

// Version is the first byte of every record. It changes only if old decoders could no longer find the fields they
// know; a new field only takes the next bit.
//
// To add a field to a job or a status: add a row at the end of its table, with the format that has it, because the
// members of a cluster are upgraded one after another (see Features). Stores without the field then decode as before,
// and older brokers refuse records with the field with ErrNewerFormat. Add it to recordtest too: a test fails for every
// field of core that is missing there. Failures, outcomes and timelines have code for each field instead.
const Version = 1

// ErrNewerFormat is returned for data that a newer version of the broker wrote.
var ErrNewerFormat = errors.New("written by a newer version of the broker")

// Errors for invalid records.
var (
	ErrTruncated = errors.New("record is truncated")
	ErrTrailing  = errors.New("record has bytes after its last field")
	ErrRange     = errors.New("number in the record is out of range")
	ErrFields    = errors.New("record has fields that exclude each other")
)

// IsInvalid reports whether err says that bytes are not a valid record.
func IsInvalid(err error) bool {
	return errors.Is(err, ErrTruncated) || errors.Is(err, ErrTrailing) || errors.Is(err, ErrRange) ||
		errors.Is(err, ErrFields)
}

// decoder reads fields from the front of b. After an error it returns zero values, so callers only check once. A count
// is checked against the remaining bytes, so it never allocates more than its input justifies.
type decoder struct {
	b   []byte
	err error
}

// fail keeps the first error; later reads return zero values.
func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.b = nil
}

// open reads the version and the set of present fields; known is the set of allowed fields.
func (d *decoder) open(known uint64) (fields uint64) {
	d.version()
	return d.fields(known)
}

func (d *decoder) version() {
	if len(d.b) == 0 {
		d.fail(ErrTruncated)
		return
	}
	switch v := d.b[0]; {
	case v > Version:
		d.fail(fmt.Errorf("record version %d: %w", v, ErrNewerFormat))
	case v < Version:
		d.fail(fmt.Errorf("record version %d: %w", v, ErrRange))
	default:
		d.b = d.b[1:]
	}
}

func (d *decoder) fields(known uint64) uint64 {
	fields := d.uvarint()
	if extra := fields &^ known; extra != 0 {
		d.fail(fmt.Errorf("record has unknown fields %#x: %w", extra, ErrNewerFormat))
		return 0
	}
	return fields
}

// close returns the first error. Bytes after the last field are an error.
func (d *decoder) close() error {
	if d.err == nil && len(d.b) != 0 {
		d.err = ErrTrailing
	}
	return d.err
}

func (d *decoder) uvarint() uint64 {
	if len(d.b) > 0 && d.b[0] < 0x80 {
		v := d.b[0]
		d.b = d.b[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail(ErrTruncated)
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	u := d.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (d *decoder) uint32() uint32 {
	v := d.uvarint()
	if v > 1<<32-1 {
		d.fail(ErrRange)
		return 0
	}
	return uint32(v)
}

func (d *decoder) byte() byte {
	v := d.uvarint()
	if v > 1<<8-1 {
		d.fail(ErrRange)
		return 0
	}
	return byte(v)
}

// take returns the next n bytes, a view of the input.
func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.fail(ErrTruncated)
		return nil
	}
	p := d.b[:n:n]
	d.b = d.b[n:]
	return p
}

// bytes returns a field that is preceded by its length, a view of the input.
func (d *decoder) bytes() []byte { return d.take(d.uvarint()) }

// text is bytes as a string, also a view.
func (d *decoder) text() string { return view(d.bytes()) }

// count returns the number of items that follow, each of at least one byte.
func (d *decoder) count() int {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.fail(ErrTruncated)
		return 0
	}
	return int(n)
}

// view returns b as a string without a copy: valid while b does not change.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// texts reads what appendTexts wrote, as views.
func (d *decoder) texts() []string {
	n := d.count()
	all := make([]string, 0, n)
	for range n {
		all = append(all, d.text())
	}
	return all
}

func appendTexts(dst []byte, all []string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(all)))
	for _, s := range all {
		dst = appendText(dst, s)
	}
	return dst
}

func appendBytes(dst, p []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(p))), p...)
}

// flag returns bit if set, otherwise zero.
func flag(set bool, bit uint64) uint64 {
	if set {
		return bit
	}
	return 0
}

// Interner returns the same string for equal strings, so that ten million jobs share the name of their queue. It keeps
// at most maxInterned strings, because some users have a name for each job. A nil *Interner returns views.
type Interner struct{ known map[string]string }

const maxInterned = 1 << 16

// NewInterner returns an empty Interner.
func NewInterner() *Interner { return &Interner{known: make(map[string]string)} }

// intern returns b as a string.
func (n *Interner) intern(b []byte) string {
	if n == nil {
		return view(b)
	}
	if s, ok := n.known[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(n.known) < maxInterned {
		n.known[s] = s
	}
	return s
}
