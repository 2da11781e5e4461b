package store

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core/internal/store/integrity"
)

// lostTable is a table that Pebble's manifest names, but whose file is missing or has another size. Salvage reads an
// empty table in its place, so that it finds what other tables and the log hold for the same keys.
type lostTable struct {
	name              string
	text              string // what is wrong with the file
	bytes             uint64
	smallest, largest []byte // keys
	first, last       uint64 // jobs, in the key spaces of jobs
	kept              uint64 // jobs between first and last that were copied
}

// loseTables notes the tables that an error of Open names, and lets fsys replace their files with empty tables. It
// reports whether it found new ones.
func (v *salvage) loseTables(fsys *patchedFS, dir string, err error) (found bool) {
	for _, match := range tablesInError.FindAllStringSubmatch(err.Error(), -1) {
		name := match[1] + integrity.TableSuffix
		path := fsys.PathJoin(dir, name)
		if fsys.emptied[path] {
			continue
		}
		text := "is missing"
		if info, err := fsys.FS.Stat(path); err == nil {
			text = fmt.Sprintf("has %d bytes, which is not its size", info.Size())
		}
		fsys.emptied[path] = true
		v.tables = append(v.tables, lostTable{name: name, text: text})
		found = true
	}
	return found
}

// describeTables reads from the manifest what lost tables held.
func (v *salvage) describeTables() error {
	if len(v.tables) == 0 {
		return nil
	}
	levels, err := v.from.db.SSTables()
	if err != nil {
		return fmt.Errorf("list the tables of the damaged store: %w", err)
	}
	for _, level := range levels {
		for i := range level {
			info := &level[i]
			name := fmt.Sprintf("%06d%s", uint64(info.BackingSSTNum), integrity.TableSuffix)
			for k := range v.tables {
				if v.tables[k].name == name {
					v.tables[k].describe(info)
				}
			}
		}
	}
	for _, t := range v.tables {
		if t.space() == spaceJob {
			v.lost.spans = append(v.lost.spans, span{after: t.first - 1, before: t.last + 1})
			v.lost.kept = v.hasCopied
		}
	}
	return nil
}

func (t *lostTable) describe(info *pebble.SSTableInfo) {
	t.bytes, t.smallest, t.largest = info.Size, bytes.Clone(info.Smallest.UserKey), bytes.Clone(info.Largest.UserKey)
	if s := t.space(); s == spaceJob || s == spaceBody {
		t.first, _, _ = parseKey(t.smallest)
		t.last = math.MaxUint64 - 1
		if seq, _, ok := parseKey(t.largest); ok {
			t.last = seq
		}
		t.first = max(t.first, 1)
	}
}

// space is the key space of the table; a table never holds keys of two.
func (t *lostTable) space() byte {
	if len(t.smallest) == 0 {
		return 0
	}
	return t.smallest[0]
}

// countKept counts a copied job for the tables that may have held a newer state of it.
func (v *salvage) countKept(seq uint64) {
	for i := range v.tables {
		if t := &v.tables[i]; t.space() == spaceJob && seq >= t.first && seq <= t.last {
			t.kept++
		}
	}
}

// hasCopied reports whether the new store has a job. It sees only written keys; once a key space is done, all of its
// keys are written.
func (v *salvage) hasCopied(seq uint64) bool {
	var key jobKey
	_, err := v.to.get(key.of(spaceJob, seq, partJob))
	return err == nil
}

// reportTables says what may be lost with tables.
func (v *salvage) reportTables() {
	for i := range v.tables {
		t := &v.tables[i]
		var what string
		switch t.space() {
		case spaceJob:
			jobs := t.last - t.first + 1
			what = fmt.Sprintf("up to %d jobs between %d and %d are lost; %d others there may be in an older state, and jobs that had ended may be back",
				jobs-min(t.kept, jobs), t.first, t.last, t.kept)
		case spaceBody:
			what = fmt.Sprintf("large bodies and outcomes of jobs between %d and %d may be lost", t.first, t.last)
		case spaceMeta:
			what = fmt.Sprintf("settings and counters between %q and %q may be lost or old", t.smallest[1:],
				t.largest[1:])
		case spaceDocument:
			what = fmt.Sprintf("documents between %q and %q may be lost or old", t.smallest[1:], t.largest[1:])
		case spaceVersion:
			what = "it held no more than the format version"
		default:
			what = "its records are lost"
		}
		v.done.Lost = append(v.done.Lost, fmt.Sprintf("table %s (%d bytes) %s: %s", t.name, t.bytes, t.text, what))
	}
}

// patchedFS is a file system on which some files end early, and others are empty tables.
type patchedFS struct {
	vfs.FS
	sizes   map[string]int64 // of files that end early
	emptied map[string]bool
	tables  *vfs.MemFS // has the empty table
}

// emptyTable is the path of the empty table in patchedFS.tables.
const emptyTable = "empty"

func newPatchedFS(fsys vfs.FS) (*patchedFS, error) {
	p := &patchedFS{FS: fsys, sizes: map[string]int64{}, emptied: map[string]bool{}, tables: vfs.NewMem()}
	f, err := p.tables.Create(emptyTable, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(f),
		sstable.WriterOptions{TableFormat: pebbleFormat.MaxTableFormat()})
	return p, w.Close()
}

// Open implements vfs.FS.
func (p *patchedFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if p.emptied[name] {
		return p.tables.Open(emptyTable)
	}
	f, err := p.FS.Open(name, opts...)
	if size, cut := p.sizes[name]; cut && err == nil {
		return &cutFile{File: f, rest: size, size: size}, nil
	}
	return f, err
}

// Stat implements vfs.FS.
func (p *patchedFS) Stat(name string) (vfs.FileInfo, error) {
	if p.emptied[name] {
		return p.tables.Stat(emptyTable)
	}
	return p.FS.Stat(name)
}

// List implements vfs.FS.
func (p *patchedFS) List(dir string) ([]string, error) {
	names, err := p.FS.List(dir)
	for path := range p.emptied {
		name := p.PathBase(path)
		if p.PathJoin(dir, name) == path && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, err
}
