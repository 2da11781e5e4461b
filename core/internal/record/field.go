package record

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"broker/core"
)

// row is a stored field of a job or a status, and all that the codec knows about it: the rows of a table are the only
// place that lists the fields. The place of a row in its table is its bit on disk: rows are never moved or removed, and
// a new field is a new last row. A field that is zero is not stored. The encoding follows from the field's type:
//
//	bool                    nothing: the bit says all
//	unsigned integer        uvarint
//	signed integer          varint
//	core.Instant            varint, of the difference from the field in after
//	string, []byte          length as uvarint, and the bytes
//	[]string                count as uvarint, and each as a string
//	[]uint64                count as uvarint, and varints: the differences from the previous number, the first from Seq
//
// Rows have the most frequent fields first, because the set of fields is an uvarint: sets of the first 7 fields take
// one byte, of the first 14 two.
type row struct {
	name   string // of the field in Go; a dot leads into a struct behind a pointer
	format int    // the first format that has it, see NewestFormat

	feature string // name of the Feature of later formats; empty: Features names it itself, with other data

	after     string // the Instant that this one is stored relative to
	low, high int64  // of an integer; zero: as its type
	kind      kind   // zero: by its type
	also      string // a second field with the same bit, for some kinds
}

// code is what the codec needs of a row, in eight bytes.
type code struct {
	kind    kind
	nested  bool   // the field is in a struct behind a pointer
	through uint16 // offset of that pointer
	at, of  uint16 // offsets of the field and of after; of is zero without after
}

// kind is the encoding of a field.
type kind uint8

const (
	byType kind = iota
	byCode      // the codec of the record encodes it
	isFlag
	isUint8
	isUint16
	isUint32
	isUint64
	isVarint
	isText
	isBytes
	isPresentBytes // stored if not nil, even if empty
	isTexts
	isSeqs
	isFailure
	isExhausted // of a job: Exhausted, and Own from the second bit on
	isMovedFrom // Moved.From, then Moved.After
)

// words finds the fields of a struct that are not zero, word by word. Most words of a job are zero, so most fields cost
// nothing.
type words struct {
	heads []word
	cells [][8]cell // by word and by byte of its value
}

// word is a place in a struct, with the bytes there that belong to stored fields.
type word struct {
	at   uintptr
	mask uint64
}

// cell is a part of a word: the field is set if one of its bytes is not zero.
type cell struct{ mask, field uint64 }

// table is the rows of a record with what follows from them.
type table struct {
	rows   []row
	codes  [64]code                 // by row
	limits [64]uint64               // of unsigned integers, by row
	known  uint64                   // all fields
	in     [NewestFormat + 1]uint64 // the fields that each format has
	words  words                    // of the struct
	nested []nested                 // the structs behind pointers
}

// nested is a struct behind a pointer of a record.
type nested struct {
	at    uintptr // of the pointer
	words words
}

// newTable completes rows of the fields of a struct. It panics if they do not fit it, which every test would show.
func newTable[R any](rows []row) *table {
	t := &table{rows: rows, known: 1<<len(rows) - 1}
	of := reflect.TypeFor[R]()
	for i := range rows {
		r := &rows[i]
		if r.format < 1 || r.format > NewestFormat {
			panic(fmt.Sprintf("record: field %s of %v has no format", r.name, of))
		}
		for format := r.format; format <= NewestFormat; format++ {
			t.in[format] |= 1 << i
		}
		if t.codes[i].kind = r.kind; r.kind != byCode {
			t.complete(i, of)
		}
	}
	return t
}

// bit returns the field with a name.
func (t *table) bit(name string) uint64 {
	for i := range t.rows {
		if t.rows[i].name == name {
			return 1 << i
		}
	}
	panic("record: there is no field " + name)
}

// within returns the fields of a struct behind a pointer.
func (t *table) within(name string) (f uint64) {
	for i := range t.rows {
		if strings.HasPrefix(t.rows[i].name, name+".") {
			f |= 1 << i
		}
	}
	return f
}

// formatOf returns the first format that has these fields, or needs.
func (t *table) formatOf(fields uint64, needs int) int {
	for ; needs <= NewestFormat && fields&^t.in[needs] != 0; needs++ {
	}
	return needs
}

// complete finds the field of a row, its encoding and its words.
func (t *table) complete(i int, of reflect.Type) {
	r, c := &t.rows[i], &t.codes[i]
	path, words := r.name, &t.words
	if outer, inner, ok := strings.Cut(path, "."); ok {
		pointer := fieldNamed(of, outer)
		n := t.nestedAt(pointer.Offset)
		c.through, c.nested = uint16(pointer.Offset), true
		path, of, words = inner, pointer.Type.Elem(), &n.words
	}
	f := fieldNamed(of, path)
	if c.at = uint16(f.Offset); r.kind == byType {
		c.kind = kindOf(f)
	}
	if r.after != "" {
		c.of = uint16(fieldNamed(of, r.after).Offset)
	}
	if t.limits[i] = uint64(r.high); r.high == 0 {
		t.limits[i] = math.MaxUint64 >> (64 - 8*min(f.Type.Size(), 8))
	}
	words.add(f, 1<<i, c.kind)
	if r.also != "" {
		words.add(fieldNamed(of, r.also), 1<<i, c.kind)
	}
}

func fieldNamed(of reflect.Type, name string) reflect.StructField {
	f, ok := of.FieldByName(name)
	if !ok {
		panic(fmt.Sprintf("record: %v has no field %s", of, name))
	}
	return f
}

// nestedAt returns the nested struct behind the pointer at an offset.
func (t *table) nestedAt(at uintptr) *nested {
	for i := range t.nested {
		if t.nested[i].at == at {
			return &t.nested[i]
		}
	}
	t.nested = append(t.nested, nested{at: at})
	return &t.nested[len(t.nested)-1]
}

// kindOf returns the encoding of a field.
func kindOf(f reflect.StructField) kind {
	switch f.Type {
	case reflect.TypeFor[*core.Failure]():
		return isFailure
	case reflect.TypeFor[[]byte]():
		return isBytes
	case reflect.TypeFor[[]string]():
		return isTexts
	case reflect.TypeFor[[]uint64]():
		return isSeqs
	}
	switch f.Type.Kind() {
	case reflect.Bool:
		return isFlag
	case reflect.Uint8:
		return isUint8
	case reflect.Uint16:
		return isUint16
	case reflect.Uint32:
		return isUint32
	case reflect.Uint64:
		return isUint64
	case reflect.Int64:
		return isVarint
	case reflect.String:
		return isText
	}
	panic(fmt.Sprintf("record: no encoding for field %s of type %v", f.Name, f.Type))
}

const wordBytes = unsafe.Sizeof(uint64(0))

// add adds the bytes of a field that say whether it is set: those of a number, or of the length of a text or list.
func (w *words) add(f reflect.StructField, field uint64, k kind) {
	at, size := f.Offset, f.Type.Size()
	if of := f.Type.Kind(); of == reflect.String || of == reflect.Slice && k != isPresentBytes {
		at += wordBytes // behind the pointer
	}
	var mask [wordBytes]byte
	for i := range min(size, wordBytes) {
		mask[at%wordBytes+i] = 0xff
	}
	c, at := cell{*(*uint64)(unsafe.Pointer(&mask)), field}, at-at%wordBytes
	i := slices.IndexFunc(w.heads, func(h word) bool { return h.at == at })
	if i < 0 {
		i = len(w.heads)
		w.heads, w.cells = append(w.heads, word{at: at}), append(w.cells, [8]cell{})
	}
	w.heads[i].mask |= c.mask
	for b := range w.cells[i] {
		if c.mask>>(8*b)&0xff != 0 {
			w.cells[i][b] = c
		}
	}
}

// fields returns the fields of the struct at p that are set.
func (t *table) fields(p unsafe.Pointer) uint64 {
	f := t.words.fields(p)
	for i := range t.nested {
		if inner := *(*unsafe.Pointer)(unsafe.Add(p, t.nested[i].at)); inner != nil {
			f |= t.nested[i].words.fields(inner)
		}
	}
	return f
}

func (w *words) fields(p unsafe.Pointer) (f uint64) {
	for i, head := range w.heads {
		for v := *(*uint64)(unsafe.Add(p, head.at)) & head.mask; v != 0; {
			c := &w.cells[i][bits.TrailingZeros64(v)/8]
			f |= c.field
			v &^= c.mask
		}
	}
	return f
}

// append writes fields of the struct at p; seq is the number of its job.
func (t *table) append(dst []byte, p unsafe.Pointer, fields, seq uint64) []byte {
	for ; fields != 0; fields &= fields - 1 {
		c, in := t.codes[bits.TrailingZeros64(fields)&63], p
		if c.nested {
			in = *(*unsafe.Pointer)(unsafe.Add(p, c.through))
		}
		at := unsafe.Add(in, c.at)
		switch c.kind {
		case byType, byCode, isFlag:
		case isUint8:
			dst = binary.AppendUvarint(dst, uint64(*(*uint8)(at)))
		case isUint16:
			dst = binary.AppendUvarint(dst, uint64(*(*uint16)(at)))
		case isUint32:
			dst = binary.AppendUvarint(dst, uint64(*(*uint32)(at)))
		case isUint64:
			dst = binary.AppendUvarint(dst, *(*uint64)(at))
		case isVarint:
			v := *(*int64)(at)
			if c.of != 0 {
				v -= *(*int64)(unsafe.Add(in, c.of))
			}
			dst = binary.AppendVarint(dst, v)
		case isText:
			dst = appendText(dst, *(*string)(at))
		case isBytes, isPresentBytes:
			dst = appendBytes(dst, *(*[]byte)(at))
		case isTexts:
			dst = appendTexts(dst, *(*[]string)(at))
		case isSeqs:
			dst = appendSeqs(dst, seq, *(*[]uint64)(at))
		case isExhausted:
			j := (*core.Job)(p)
			dst = binary.AppendUvarint(dst, uint64(j.Exhausted)|uint64(j.Own)<<1)
		case isFailure:
			dst = appendBytes(dst, AppendFailure(nil, *(**core.Failure)(at)))
		case isMovedFrom:
			m := (*Moved)(in)
			dst = binary.AppendUvarint(appendText(dst, m.From), uint64(m.After))
		}
	}
	return dst
}

// table reads fields into the struct at p, whose other fields are zero, as views. The pointers to nested structs of
// the fields are set. It is the inverse of table.append.
func (d *decoder) table(t *table, p unsafe.Pointer, fields, seq uint64) {
	for ; fields != 0; fields &= fields - 1 {
		i, in := bits.TrailingZeros64(fields)&63, p
		c := t.codes[i]
		if c.nested {
			in = *(*unsafe.Pointer)(unsafe.Add(p, c.through))
		}
		at := unsafe.Add(in, c.at)
		switch c.kind {
		case byType, byCode:
		case isFlag:
			*(*bool)(at) = true
		case isUint8:
			*(*uint8)(at) = uint8(d.atMost(t.limits[i]))
		case isUint16:
			*(*uint16)(at) = uint16(d.atMost(t.limits[i]))
		case isUint32:
			*(*uint32)(at) = uint32(d.atMost(t.limits[i]))
		case isUint64:
			*(*uint64)(at) = d.uvarint()
		case isVarint:
			v := d.varint()
			if c.of != 0 {
				v += *(*int64)(unsafe.Add(in, c.of))
			}
			if r := &t.rows[i]; r.low != 0 && (v < r.low || v > r.high) {
				d.fail(ErrRange)
			}
			*(*int64)(at) = v
		case isText:
			*(*string)(at) = d.text()
		case isBytes, isPresentBytes:
			*(*[]byte)(at) = d.bytes()
		case isTexts:
			*(*[]string)(at) = d.texts()
		case isSeqs:
			*(*[]uint64)(at) = d.seqs(seq, *(*[]uint64)(at))
		case isExhausted:
			d.exhausted((*core.Job)(p))
		case isFailure:
			*(**core.Failure)(at) = d.failure()
		case isMovedFrom:
			m := (*Moved)(in)
			m.From, m.After = d.text(), d.uint32()
		}
	}
}

// atMost reads a number with a limit.
func (d *decoder) atMost(limit uint64) uint64 {
	v := d.uvarint()
	if v > limit {
		d.fail(ErrRange)
		return 0
	}
	return v
}

// exhausted reads Exhausted and, from the second bit on, Own.
func (d *decoder) exhausted(j *core.Job) {
	v := d.byte()
	if j.Exhausted, j.Own = core.Exhausted(v&1), core.PolicyFields(v>>1); j.Own > core.JobFields {
		d.fail(ErrRange)
	}
}

// appendSeqs writes each number as its difference from the previous number, the first from base. Linked jobs are mostly
// close to each other, so differences are small.
func appendSeqs(dst []byte, base uint64, seqs []uint64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(seqs)))
	for _, s := range seqs {
		dst = binary.AppendVarint(dst, int64(s-base))
		base = s
	}
	return dst
}

// seqs is the inverse of appendSeqs; it appends to into.
func (d *decoder) seqs(base uint64, into []uint64) []uint64 {
	n := d.count()
	if into == nil && n > 0 {
		into = make([]uint64, 0, n)
	}
	for range n {
		base += uint64(d.varint())
		into = append(into, base)
	}
	return into
}
