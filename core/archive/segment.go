package archive

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"broker/core/internal/record"
)

// segmentMagic begins a segment. On disk.
const segmentMagic = "brkseg1\n"

// frameHead is the size of the header of an entry.
const frameHead = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame appends a framed entry, which was committed and so is one that its format can carry.
func appendFrame(dst []byte, e *record.Entry) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, frameHead)...)
	dst, err := record.AppendEntry(dst, e)
	if err != nil {
		panic("archive: a committed entry cannot be encoded: " + err.Error())
	}
	entry := dst[start+frameHead:]
	binary.BigEndian.PutUint32(dst[start:], uint32(len(entry)))
	binary.BigEndian.PutUint32(dst[start+4:], crc32.Checksum(entry, castagnoli))
	return dst
}

// appendRaw is appendFrame for an entry that is encoded already.
func appendRaw(dst, entry []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(entry)))
	dst = binary.BigEndian.AppendUint32(dst, crc32.Checksum(entry, castagnoli))
	return append(dst, entry...)
}

// errTorn means that a segment ends within an entry, as after a crash.
var errTorn = errors.New("it ends within an entry")

// errDamaged means that an entry is damaged and is not the end of the segment.
var errDamaged = errors.New("an entry is damaged")

// segmentReader reads the entries of a segment.
type segmentReader struct {
	file *os.File
	in   *bufio.Reader
	left int64 // bytes of the file that are not read yet
	buf  []byte
}

// openSegment opens a segment for reading. A file that is too short to be one has no entries.
func openSegment(path string) (*segmentReader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	r := &segmentReader{file: file, in: bufio.NewReaderSize(file, 256<<10), left: info.Size()}
	if r.left < int64(len(segmentMagic)) {
		r.left = 0
		return r, nil
	}
	magic := make([]byte, len(segmentMagic))
	if _, err := io.ReadFull(r.in, magic); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if string(magic) != segmentMagic {
		return nil, errors.Join(fmt.Errorf("%w: %s is not a segment of an archive", errDamaged, path), file.Close())
	}
	r.left -= int64(len(segmentMagic))
	return r, nil
}

// next returns the next entry, or io.EOF, errTorn or errDamaged. The entry is valid until the next call.
func (r *segmentReader) next() (*record.Entry, error) {
	if r.left == 0 {
		return nil, io.EOF
	}
	if r.left < frameHead {
		return nil, errTorn
	}
	var head [frameHead]byte
	if _, err := io.ReadFull(r.in, head[:]); err != nil {
		return nil, err
	}
	size := int64(binary.BigEndian.Uint32(head[:]))
	if size > r.left-frameHead {
		return nil, r.torn()
	}
	if int64(cap(r.buf)) < size {
		r.buf = make([]byte, size)
	}
	r.buf = r.buf[:size]
	if _, err := io.ReadFull(r.in, r.buf); err != nil {
		return nil, err
	}
	r.left -= frameHead + size
	if size == 0 || crc32.Checksum(r.buf, castagnoli) != binary.BigEndian.Uint32(head[4:]) {
		if r.left == 0 {
			return nil, errTorn
		}
		return nil, errDamaged
	}
	return record.DecodeEntry(r.buf)
}

// torn decides what a length beyond the end of the segment means: the writer has stopped within an entry, or the length
// is damaged. Whole entries follow only damage.
func (r *segmentReader) torn() error {
	r.left = 0
	rest, err := io.ReadAll(io.LimitReader(r.in, segmentBytes))
	if err != nil {
		return err
	}
	for ; len(rest) > frameHead; rest = rest[1:] {
		size := int(binary.BigEndian.Uint32(rest))
		if size == 0 || size > maxSearched || size > len(rest)-frameHead {
			continue
		}
		entry := rest[frameHead:][:size]
		if number, err := record.NumberOf(entry); err != nil || number == 0 {
			continue
		}
		if crc32.Checksum(entry, castagnoli) == binary.BigEndian.Uint32(rest[4:]) {
			return errDamaged
		}
	}
	return errTorn
}

// maxSearched limits the size of the entries that torn looks for, and so the checksums that it computes.
const maxSearched = 1 << 20

// close ends the reading.
func (r *segmentReader) close() { _ = r.file.Close() } // only read

// file is a file that a Writer writes; *os.File implements it.
type file interface {
	io.Writer
	Sync() error
	Close() error
}

// createFile makes a file that must not exist. Only the owner has access: jobs can hold secrets.
func createFile(path string) (file, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
