package rescue

import (
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core/internal/store/atomicfile"
)

// FS is a file system on which some files are replaced by others, or end early. It is only read.
type FS struct {
	vfs.FS
	replaced map[string]place
	sizes    map[string]int64 // of files that end early
	texts    *vfs.MemFS       // replacements that are made in memory
}

// place is where the content of a file is.
type place struct {
	fsys vfs.FS
	path string
}

// NewFS returns a file system that is still like fsys.
func NewFS(fsys vfs.FS) *FS {
	return &FS{FS: fsys, replaced: map[string]place{}, sizes: map[string]int64{}, texts: vfs.NewMem()}
}

// Replace lets path have the content of another file, whether or not path exists.
func (p *FS) Replace(path, with string) { p.replaced[path] = place{p.FS, with} }

// Write lets path, a file of dir, have a content, whether or not path exists.
func (p *FS) Write(dir, name, text string) error {
	path := p.PathJoin(dir, name)
	p.replaced[path] = place{p.texts, name}
	return atomicfile.Write(p.texts, "", name, text)
}

// Replaced reports whether path has the content of another file.
func (p *FS) Replaced(path string) bool { _, is := p.replaced[path]; return is }

// Cut lets path end after some bytes. It reports false if it did already.
func (p *FS) Cut(path string, size int64) bool {
	if _, twice := p.sizes[path]; twice {
		return false
	}
	p.sizes[path] = size
	return true
}

func (p *FS) at(path string) place {
	if is, found := p.replaced[path]; found {
		return is
	}
	return place{p.FS, path}
}

// Open implements vfs.FS.
func (p *FS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	is := p.at(name)
	f, err := is.fsys.Open(is.path, opts...)
	if size, cut := p.sizes[name]; cut && err == nil {
		return &cutFile{File: f, rest: size, size: size}, nil
	}
	return f, err
}

// Stat implements vfs.FS.
func (p *FS) Stat(name string) (vfs.FileInfo, error) {
	is := p.at(name)
	return is.fsys.Stat(is.path)
}

// List implements vfs.FS.
func (p *FS) List(dir string) ([]string, error) {
	names, err := p.FS.List(dir)
	for path := range p.replaced {
		name := p.PathBase(path)
		if p.PathJoin(dir, name) == path && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, err
}

// cutFile is a file that ends early.
type cutFile struct {
	vfs.File
	rest, size int64
}

// Read implements vfs.File.
func (f *cutFile) Read(p []byte) (int, error) {
	if f.rest == 0 {
		return 0, io.EOF
	}
	n, err := f.File.Read(p[:min(int64(len(p)), f.rest)])
	f.rest -= int64(n)
	return n, err
}

// ReadAt implements vfs.File.
func (f *cutFile) ReadAt(p []byte, at int64) (int, error) {
	return io.NewSectionReader(f.File, 0, f.size).ReadAt(p, at)
}
