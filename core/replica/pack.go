package replica

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// A copy of a store is sent as one stream of known length:
//
//	"SNAP1" │ files: length of the name, 1 byte; name; size, 8 bytes; content; CRC-32C of the content, 4 bytes │ 0
const packMagic = "SNAP1"

// localSnapshot begins a snapshot of this node's own store; the position of the last entry follows.
const localSnapshot = "HERE1"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// packFile is a file of a copy.
type packFile struct {
	name string
	size int64
}

// packFiles lists the files of a folder and computes the length of their stream.
func packFiles(dir string) (files []packFile, size int64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, 0, err
	}
	size = int64(len(packMagic)) + 1
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, 0, err
		}
		if !info.Mode().IsRegular() || len(e.Name()) > 255 {
			return nil, 0, fmt.Errorf("%s is not a file of a store", filepath.Join(dir, e.Name()))
		}
		files = append(files, packFile{e.Name(), info.Size()})
		size += 1 + int64(len(e.Name())) + 8 + info.Size() + 4
	}
	// errors of small files show first
	slices.SortFunc(files, func(a, b packFile) int { return cmp.Compare(a.size, b.size) })
	return files, size, nil
}

// pack writes the stream.
func pack(w io.Writer, dir string, files []packFile) error {
	out := bufio.NewWriterSize(w, 256<<10)
	_, _ = out.WriteString(packMagic) // Flush returns the first error
	for _, f := range files {
		_ = out.WriteByte(byte(len(f.name)))
		_, _ = out.WriteString(f.name)
		_, _ = out.Write(binary.BigEndian.AppendUint64(nil, uint64(f.size)))
		sum, err := packOne(out, filepath.Join(dir, f.name), f.size)
		if err != nil {
			return err
		}
		_, _ = out.Write(binary.BigEndian.AppendUint32(nil, sum.Sum32()))
	}
	_ = out.WriteByte(0)
	return out.Flush()
}

func packOne(out io.Writer, path string, size int64) (hash.Hash32, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	sum := crc32.New(castagnoli)
	if n, err := io.CopyN(io.MultiWriter(out, sum), f, size); err != nil {
		return nil, fmt.Errorf("%s: %d of %d bytes: %w", path, n, size, err)
	}
	return sum, nil
}

// errPack means that a copy was changed on its way.
var errPack = errors.New("the copy is damaged")

// unpack writes the files of a stream to a folder, durably.
func unpack(r io.Reader, dir string) error {
	in := bufio.NewReaderSize(r, 256<<10)
	head := make([]byte, len(packMagic))
	if _, err := io.ReadFull(in, head); err != nil || string(head) != packMagic {
		return errors.Join(errPack, err)
	}
	for {
		n, err := in.ReadByte()
		if err != nil {
			return errors.Join(errPack, err)
		}
		if n == 0 {
			return syncDir(dir)
		}
		head := make([]byte, int(n)+8)
		if _, err := io.ReadFull(in, head); err != nil {
			return errors.Join(errPack, err)
		}
		name, size := string(head[:n]), binary.BigEndian.Uint64(head[n:])
		if filepath.Base(name) != name || name == "." || name == ".." || size > 1<<62 {
			return fmt.Errorf("file %q: %w", name, errPack)
		}
		if err := unpackOne(in, filepath.Join(dir, name), int64(size)); err != nil {
			return fmt.Errorf("file %s: %w", name, err)
		}
	}
}

func unpackOne(in io.Reader, path string, size int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	sum := crc32.New(castagnoli)
	_, err = io.CopyN(io.MultiWriter(f, sum), in, size)
	want := make([]byte, 4)
	if err == nil {
		_, err = io.ReadFull(in, want)
	}
	if err == nil && binary.BigEndian.Uint32(want) != sum.Sum32() {
		err = errPack
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// writeFile creates or replaces a file, durably.
func writeFile(path string, content []byte) error {
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}
