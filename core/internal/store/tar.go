package store

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core/internal/store/atomicfile"
)

// Tar is a copy of a store that is sent as a tar file: the files of its folder, without the folder's name.
type Tar struct {
	Size int64 // of the tar file, in bytes

	dir   string
	files []fs.FileInfo
}

// tarBlock is the unit of tar files: a header has one block, a file whole blocks, and the end two.
const tarBlock = 512

// OpenTar reads the names and sizes of the files of a copy, which must not change any more.
func OpenTar(dir string) (*Tar, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	t := &Tar{dir: dir, Size: 2 * tarBlock}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s: only files can be sent", filepath.Join(dir, e.Name()))
		}
		t.files = append(t.files, info)
		t.Size += tarBlock + (info.Size()+tarBlock-1)/tarBlock*tarBlock
	}
	return t, nil
}

// WriteTo writes the tar file, of Size bytes.
func (t *Tar) WriteTo(w io.Writer) (int64, error) {
	counted := &countingWriter{w: w}
	archive := tar.NewWriter(counted)
	for _, info := range t.files {
		head := &tar.Header{
			Name: info.Name(), Mode: 0o600, Size: info.Size(), ModTime: info.ModTime().Truncate(time.Second),
			Format: tar.FormatUSTAR,
		}
		if err := archive.WriteHeader(head); err != nil {
			return counted.n, err
		}
		file, err := os.Open(filepath.Join(t.dir, info.Name()))
		if err != nil {
			return counted.n, err
		}
		_, err = io.Copy(archive, file)
		if err = errors.Join(err, file.Close()); err != nil {
			return counted.n, err
		}
	}
	return counted.n, archive.Close()
}

type countingWriter struct {
	w io.Writer
	n int64
}

// Write implements io.Writer.
func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// ReceiveCopy reads a Tar into a folder that must not exist yet. The folder gets its name only when
// the copy is complete.
func ReceiveCopy(r io.Reader, dir string) (err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err == nil {
		return fmt.Errorf("copy store to %s: %w", dir, fs.ErrExist)
	}
	return makeCopy(vfs.Default, dir, func(whole string) error {
		if err := atomicfile.MakeDir(vfs.Default, whole); err != nil {
			return err
		}
		archive := tar.NewReader(r)
		for {
			head, err := archive.Next()
			if errors.Is(err, io.EOF) {
				return atomicfile.SyncDir(vfs.Default, whole)
			}
			if err != nil {
				return err
			}
			if !filepath.IsLocal(head.Name) || filepath.Base(head.Name) != head.Name {
				return fmt.Errorf("a backup has no file %q", head.Name)
			}
			if err := receiveFile(archive, filepath.Join(whole, head.Name)); err != nil {
				return err
			}
		}
	})
}

func receiveFile(r io.Reader, path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, r)
	return errors.Join(err, file.Sync(), file.Close())
}
