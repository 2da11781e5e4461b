package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"
)

// recordVersion is the first byte of every record. It changes when a record can no longer be read field by field in the
// way that decoder does; a new field only takes a new bit.
const recordVersion = 1

// Reasons for which bytes are no record. They are wrapped in a DamageError that says which.
var (
	errCut      = errors.New("record ends too early")
	errTrailing = errors.New("record goes on behind its last field")
	errRange    = errors.New("a number in the record is out of range")
	errFields   = errors.New("fields of the record exclude each other")
)

// decoder reads fields off the front of b. After an error it returns zero values, so that callers check once. It
// allocates nothing beyond what its input justifies: no count is believed before as many bytes are there.
type decoder struct {
	b   []byte
	err error
}

// fail keeps the first error and makes every later read come back empty.
func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.b = nil
}

// open reads the version and the fields that are there; known is the set of those that may be.
func (d *decoder) open(known uint64) (fields uint64) {
	if len(d.b) == 0 {
		d.fail(errCut)
		return 0
	}
	if v := d.b[0]; v != recordVersion {
		if v > recordVersion {
			d.fail(fmt.Errorf("record version %d: %w", v, ErrNewerFormat))
		} else {
			d.fail(fmt.Errorf("record version %d: %w", v, errRange))
		}
		return 0
	}
	d.b = d.b[1:]
	fields = d.uvarint()
	if extra := fields &^ known; extra != 0 {
		d.fail(fmt.Errorf("record has unknown fields %#x: %w", extra, ErrNewerFormat))
		return 0
	}
	return fields
}

// close reports the first error; a record must end with its last field.
func (d *decoder) close() error {
	if d.err == nil && len(d.b) != 0 {
		d.err = errTrailing
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
		d.fail(errCut)
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
		d.fail(errRange)
		return 0
	}
	return uint32(v)
}

func (d *decoder) byte() byte {
	v := d.uvarint()
	if v > 1<<8-1 {
		d.fail(errRange)
		return 0
	}
	return byte(v)
}

// take is the next n bytes, still part of the input.
func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.fail(errCut)
		return nil
	}
	p := d.b[:n:n]
	d.b = d.b[n:]
	return p
}

// bytes is a field with its length in front, still part of the input.
func (d *decoder) bytes() []byte { return d.take(d.uvarint()) }

// text is like bytes.
func (d *decoder) text() string { return view(d.bytes()) }

// count is the number of items that follow, each of at least one byte.
func (d *decoder) count() int {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.fail(errCut)
		return 0
	}
	return int(n)
}

// view is b as a string without a copy: valid as long as nobody writes to b.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendBytes(dst, p []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(p))), p...)
}

// flag is bit if set, else nothing.
func flag(set bool, bit uint64) uint64 {
	if set {
		return bit
	}
	return 0
}

// names hands out one string for all equal ones, so that the queue of ten million jobs is one string. It stops learning
// when it is full, for those who name every job differently. A nil *names makes views.
type names struct{ known map[string]string }

const maxNames = 1 << 16

func (n *names) of(b []byte) string {
	if n == nil {
		return view(b)
	}
	if s, ok := n.known[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(n.known) < maxNames {
		n.known[s] = s
	}
	return s
}
