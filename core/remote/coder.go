package remote

import (
	"encoding/binary"
	"errors"

	"broker/core"
)

// coder writes values, or reads them in the same order: one function describes a structure in both directions, so that
// the two cannot differ. What it writes it leaves unchanged, since other goroutines may read it. After an error it
// reads zeros.
type coder struct {
	buf     []byte // written, or not read yet
	reading bool
	aliases bool      // bytes that are read stay in buf, which belongs to the values from then on
	spare   *spareOps // for operations that are read; nil: each is a new one
	err     error
}

// errMalformed is returned for a message that no node of this build writes.
var errMalformed = errors.New("malformed message between nodes")

func (c *coder) fail() {
	c.err, c.buf = errMalformed, nil
}

// uvarint is a number of up to ten bytes, small ones are short.
func (c *coder) uvarint(v uint64) uint64 {
	if !c.reading {
		if v < 0x80 { // most are
			c.buf = append(c.buf, byte(v))
		} else {
			c.buf = binary.AppendUvarint(c.buf, v)
		}
		return v
	}
	if len(c.buf) > 0 && c.buf[0] < 0x80 {
		v = uint64(c.buf[0])
		c.buf = c.buf[1:]
		return v
	}
	v, n := binary.Uvarint(c.buf)
	if n <= 0 {
		c.fail()
		return 0
	}
	c.buf = c.buf[n:]
	return v
}

// unsigned is a field that is not negative.
func unsigned[T ~uint8 | ~uint16 | ~uint32 | ~uint64](c *coder, v *T) {
	if !c.reading {
		c.uvarint(uint64(*v))
		return
	}
	n := c.uvarint(0)
	if *v = T(n); uint64(*v) != n {
		c.fail()
	}
}

// signed is a field that may be negative.
func signed[T ~int | ~int64](c *coder, v *T) {
	if !c.reading {
		n := int64(*v)
		c.uvarint(uint64(n)<<1 ^ uint64(n>>63))
		return
	}
	z := c.uvarint(0)
	*v = T(int64(z>>1) ^ -int64(z&1))
}

// flags are up to 64 booleans.
func (c *coder) flags(all ...*bool) {
	if !c.reading {
		var set uint64
		for i, f := range all {
			if *f {
				set |= 1 << i
			}
		}
		c.uvarint(set)
		return
	}
	set := c.uvarint(0)
	for i, f := range all {
		*f = set>>i&1 != 0
	}
}

// take returns the next n bytes of what is read.
func (c *coder) take(n uint64) []byte {
	if n > uint64(len(c.buf)) {
		c.fail()
		return nil
	}
	p := c.buf[:n:n]
	c.buf = c.buf[n:]
	return p
}

// text is a string, which never shares memory with the message.
func (c *coder) text(s *string) {
	n := c.uvarint(uint64(len(*s)))
	if !c.reading {
		c.buf = append(c.buf, *s...)
		return
	}
	*s = string(c.take(n))
}

// bytes are bytes, nil or not.
func (c *coder) bytes(b *[]byte) {
	n := c.size(len(*b), *b == nil)
	switch {
	case !c.reading:
		c.buf = append(c.buf, *b...)
	case n < 0:
		*b = nil
	case c.aliases:
		*b = c.take(uint64(n))
	default:
		*b = append([]byte{}, c.take(uint64(n))...)
	}
}

// size is the length of a slice; -1: it is nil.
func (c *coder) size(n int, isNil bool) int {
	if !c.reading {
		if isNil {
			c.uvarint(0)
			return -1
		}
		c.uvarint(uint64(n) + 1)
		return n
	}
	v := c.uvarint(0)
	if v > uint64(len(c.buf))+1 { // each element has at least a byte
		c.fail()
		return -1
	}
	return int(v) - 1
}

// slice is a slice of values.
func slice[T any](c *coder, all *[]T, each func(*coder, *T)) {
	n := c.size(len(*all), *all == nil)
	if c.reading {
		if *all = nil; n >= 0 {
			*all = make([]T, 0, min(n, 1024)) // a length may lie
		}
		for i := 0; i < n && c.err == nil; i++ {
			var v T
			each(c, &v)
			*all = append(*all, v)
		}
		return
	}
	for i := range *all {
		each(c, &(*all)[i])
	}
}

// optional is a value or nil.
func optional[T any](c *coder, v **T, each func(*coder, *T)) {
	there := *v != nil
	c.flags(&there)
	if c.reading {
		if *v = nil; there {
			*v = new(T)
		}
	}
	if there {
		each(c, *v)
	}
}

func texts(c *coder, all *[]string)      { slice(c, all, (*coder).text) }
func numbers(c *coder, all *[]uint64)    { slice(c, all, unsigned) }
func states(c *coder, all *[]core.State) { slice(c, all, unsigned) }

// section writes the length of what f writes in front of it, in four bytes, so that f can be skipped, or decoded by
// another decoder.
func (c *coder) section(f func()) {
	at := len(c.buf)
	c.buf = append(c.buf, 0, 0, 0, 0)
	f()
	binary.BigEndian.PutUint32(c.buf[at:], uint32(len(c.buf)-at-4))
}

// nextSection returns the bytes of a section.
func (c *coder) nextSection() []byte {
	head := c.take(4)
	if head == nil {
		return nil
	}
	return c.take(uint64(binary.BigEndian.Uint32(head)))
}
