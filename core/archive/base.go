package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// sumsFile is the last file of a base copy.
const sumsFile = "SHA256SUMS"

// maxSums limits the size of sumsFile.
const maxSums = 64 << 20

// errBase means that a base copy is damaged.
var errBase = errors.New("the base copy is damaged")

// packBase writes the files of a folder as a base copy. It stops when ctx ends.
func packBase(ctx context.Context, out io.Writer, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	to := bufio.NewWriterSize(out, 1<<20)
	archive := tar.NewWriter(to)
	var sums bytes.Buffer
	for _, e := range entries {
		sum, err := packFile(ctx, archive, filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(&sums, "%s  %s\n", hex.EncodeToString(sum), e.Name()) // memory
	}
	if err := archive.WriteHeader(&tar.Header{
		Name: sumsFile, Mode: 0o600, Size: int64(sums.Len()), Format: tar.FormatUSTAR,
	}); err != nil {
		return err
	}
	if _, err := archive.Write(sums.Bytes()); err != nil {
		return err
	}
	return errors.Join(archive.Close(), to.Flush())
}

// packFile adds a file and returns its hash.
func packFile(ctx context.Context, to *tar.Writer, path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file of a store", path)
	}
	head := &tar.Header{
		Name: info.Name(), Mode: 0o600, Size: info.Size(), ModTime: info.ModTime(), Format: tar.FormatPAX,
	}
	if err := to.WriteHeader(head); err != nil {
		return nil, err
	}
	sum := sha256.New()
	_, err = io.CopyN(io.MultiWriter(to, sum), ctxReader{ctx, f}, info.Size())
	return sum.Sum(nil), err
}

// ctxReader is a reader that stops when its context is done.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (c ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// readBase reads a base copy and verifies it. It writes the files to dir, unless that is empty.
func readBase(ctx context.Context, path, dir string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	archive := tar.NewReader(bufio.NewReaderSize(ctxReader{ctx, f}, 1<<20))
	var sums strings.Builder
	for {
		head, err := archive.Next()
		if err != nil {
			return baseError(ctx, path, err) // also for io.EOF: the sums are missing
		}
		if head.Name == sumsFile {
			want, err := io.ReadAll(io.LimitReader(archive, maxSums))
			if err != nil {
				return baseError(ctx, path, err)
			}
			if string(want) != sums.String() {
				return fmt.Errorf("%s: %w: its files do not match %s", path, errBase, sumsFile)
			}
			return nil
		}
		if !filepath.IsLocal(head.Name) || filepath.Base(head.Name) != head.Name {
			return fmt.Errorf("%s: %w: file %q", path, errBase, head.Name)
		}
		sum, err := unpackFile(archive, dir, head.Name)
		if err != nil {
			return baseError(ctx, path, err)
		}
		_, _ = fmt.Fprintf(&sums, "%s  %s\n", hex.EncodeToString(sum), head.Name) // memory
	}
}

// baseError distinguishes damage from errors of this machine.
func baseError(ctx context.Context, path string, err error) error {
	var own *os.PathError
	if ctx.Err() != nil || errors.As(err, &own) {
		return err
	}
	return fmt.Errorf("%s: %w: %w", path, errBase, err)
}

// unpackFile writes a file of a base copy and returns its hash.
func unpackFile(from io.Reader, dir, name string) ([]byte, error) {
	sum := sha256.New()
	if dir == "" {
		_, err := io.Copy(sum, from)
		return sum.Sum(nil), err
	}
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.MultiWriter(f, sum), from)
	return sum.Sum(nil), errors.Join(err, f.Sync(), f.Close())
}
