package rescue

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"
	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core/internal/store/atomicfile"
)

// Table is what ReadTable has found in a table.
type Table struct {
	Bytes             uint64 // size of the file
	Smallest, Largest sstable.InternalKey
	OldestSeq         uint64 // the smallest and the largest of Pebble's numbers of commits
	NewestSeq         uint64
	Keys              int
	Gaps              []Gap
	Intact            bool // Pebble can read all of it
}

// Gap is a part of a table that cannot be read: keys between two others.
type Gap struct {
	After, Before []byte // nil: the gap reaches to the beginning or the end of the table
	Err           error
}

// ReadTable calls each for every key of a table that can be read, in order. Keys and values are valid during the call.
// The error is that of each, or of the file system.
func ReadTable(
	fsys vfs.FS, path string, each func(key sstable.InternalKey, value []byte) error,
) (t Table, err error) {
	f, err := fsys.Open(path)
	if err != nil {
		return t, err
	}
	defer func() { _ = f.Close() }() // it is only read
	info, err := f.Stat()
	if err != nil {
		return t, err
	}
	t.Bytes = uint64(info.Size())
	r := tableReader{table: &t, each: each}
	handles, err := index(f)
	if err != nil {
		whole, readErr := atomicfile.Read(fsys, path)
		if readErr != nil && len(whole) == 0 {
			return t, readErr
		}
		return t, r.scan(whole, err)
	}
	for _, h := range handles {
		data, err := readBlock(f, h.Handle)
		if err := r.block(data, err); err != nil {
			return t, err
		}
	}
	r.endGap(nil)
	t.Intact = len(t.Gaps) == 0
	return t, nil
}

// index returns the places of a table's data blocks. Afterwards everything that Pebble reads before them is known to be
// intact.
func index(f vfs.File) (handles []block.HandleWithProperties, err error) {
	readable, err := sstable.NewSimpleReadable(unclosed{f})
	if err != nil {
		return nil, err
	}
	r, err := sstable.NewReader(context.Background(), readable, sstable.ReaderOptions{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // it was only read
	layout, err := r.Layout()
	if err != nil {
		return nil, err
	}
	return layout.Data, nil
}

// unclosed is a file that stays open when its reader is closed.
type unclosed struct{ vfs.File }

// Close implements io.Closer.
func (unclosed) Close() error { return nil }

func keySchema() colblk.KeySchema { return colblk.DefaultKeySchema(pebble.DefaultComparer, 16) }

// readBlock returns the content of a block.
func readBlock(f io.ReaderAt, h block.Handle) ([]byte, error) {
	raw := make([]byte, h.Length+block.TrailerLen)
	if _, err := f.ReadAt(raw, int64(h.Offset)); err != nil {
		return nil, err
	}
	if !sumFits(crc32.Checksum(raw[:h.Length+1], castagnoli), raw[h.Length+1:]) {
		return nil, fmt.Errorf("the checksum of block %d/%d is wrong", h.Offset, h.Length)
	}
	return content(raw[:h.Length+1])
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumFits compares a checksum with one on disk, in the form in which Pebble stores it.
func sumFits(sum uint32, stored []byte) bool {
	return (sum>>15|sum<<17)+0xa282ead8 == binary.LittleEndian.Uint32(stored)
}

// content decompresses a block with its type.
func content(raw []byte) ([]byte, error) {
	kind, packed := block.CompressionIndicator(raw[len(raw)-1]), raw[:len(raw)-1]
	switch kind {
	case block.NoCompressionIndicator, block.SnappyCompressionIndicator, block.ZstdCompressionIndicator,
		block.MinLZCompressionIndicator:
	default:
		return nil, fmt.Errorf("a block has the unknown type %d", byte(kind))
	}
	size, err := block.DecompressedLen(kind, packed)
	if err != nil {
		return nil, err
	}
	data := make([]byte, size)
	return data, block.DecompressInto(kind, packed, data)
}

// tableReader is one call of ReadTable.
type tableReader struct {
	table *Table
	each  func(sstable.InternalKey, []byte) error
	last  []byte // the last key
	gap   error  // why what follows it could not be read
}

// block reads a data block, or begins a gap if it could not be read.
func (r *tableReader) block(data []byte, err error) error {
	if err == nil && !isData(data) {
		err = errNoData
	}
	if err != nil {
		r.gap = err
		return nil
	}
	schema := keySchema()
	var decoder colblk.DataBlockDecoder
	decoder.Init(&schema, data)
	external := decoder.BlockDecoder().Bitmap(len(schema.ColumnTypes) + externalColumn)
	for row := range decoder.BlockDecoder().Rows() {
		if external.At(row) {
			r.gap = errors.New("a block has values outside of it")
			return nil
		}
	}
	var it colblk.DataBlockIter
	it.InitOnce(&schema, pebble.DefaultComparer, nil)
	if err := it.Init(&decoder, block.IterTransforms{}); err != nil {
		return err
	}
	defer func() { _ = it.Close() }() // nothing to release
	for kv := it.First(); kv != nil; kv = it.Next() {
		r.endGap(kv.K.UserKey)
		r.count(kv.K)
		if err := r.each(kv.K, kv.V.InPlaceValue()); err != nil {
			return err
		}
	}
	return nil
}

// count adds a key to what is known of the table.
func (r *tableReader) count(key sstable.InternalKey) {
	t, seq := r.table, uint64(key.SeqNum())
	if t.Keys == 0 {
		t.Smallest, t.OldestSeq = key.Clone(), seq
	}
	t.Keys++
	t.OldestSeq, t.NewestSeq = min(t.OldestSeq, seq), max(t.NewestSeq, seq)
	r.last = append(r.last[:0], key.UserKey...)
	t.Largest = sstable.InternalKey{UserKey: r.last, Trailer: key.Trailer}
}

// endGap ends the gap before a key; nil: the end of the table.
func (r *tableReader) endGap(before []byte) {
	if r.gap != nil {
		r.table.Gaps = append(r.table.Gaps, Gap{After: bytes.Clone(r.last), Before: bytes.Clone(before), Err: r.gap})
		r.gap = nil
	}
}

// Columns behind those of the key.
const (
	dataColumns    = 5
	externalColumn = 3
	dataHeader     = 4 // bytes before a data block's columns
)

var errNoData = errors.New("a block is not one of data")

// isData distinguishes blocks of data from the others, which follow them.
func isData(data []byte) bool {
	schema := keySchema()
	columns := len(schema.ColumnTypes) + dataColumns
	if len(data) < int(colblk.HeaderSize(columns, dataHeader+schema.HeaderSize)) {
		return false
	}
	h := colblk.DecodeHeader(data[dataHeader+schema.HeaderSize:])
	return h.Version == colblk.Version1 && int(h.Columns) == columns && h.Rows > 0 && int64(h.Rows) < int64(len(data))
}

// scan reads the data blocks of a table whose index is lost. A block ends where its checksum fits. After damage it is
// not known where the next block begins.
func (r *tableReader) scan(whole []byte, why error) error {
	r.gap = nil
	for len(whole) > 0 {
		data, size := firstBlock(whole)
		if size > 0 && !isData(data) {
			return nil // the index, or what follows it: all data blocks were read
		}
		if size == 0 {
			break
		}
		if err := r.block(data, nil); err != nil {
			return err
		}
		whole = whole[size:]
	}
	r.gap = why
	r.endGap(nil)
	return nil
}

// firstBlock finds the end of the block at the beginning of b. The size is zero if there is none.
func firstBlock(b []byte) (data []byte, size int) {
	sum := uint32(0)
	for end := range max(0, len(b)-block.TrailerLen+1) {
		sum = crc32.Update(sum, castagnoli, b[end:end+1]) // of a block that ends before, and the byte with its type
		if sumFits(sum, b[end+1:]) {
			if data, err := content(b[:end+1]); err == nil {
				return data, end + block.TrailerLen
			}
		}
	}
	return nil, 0
}

// Rewrite writes the keys of a table that can be read to a new table, which is empty if the table is missing.
func Rewrite(fsys vfs.FS, from, to string, format sstable.TableFormat) error {
	f, err := fsys.Create(to, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	w := sstable.NewRawWriter(objstorageprovider.NewFileWritable(f), sstable.WriterOptions{TableFormat: format})
	_, err = ReadTable(fsys, from, func(key sstable.InternalKey, value []byte) error {
		return w.Add(key, value, false)
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, w.Close())
}
