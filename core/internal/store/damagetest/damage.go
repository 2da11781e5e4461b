// Package damagetest damages stores, for tests of code that reads them.
package damagetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core/internal/record"
	"broker/core/internal/store"
	"broker/core/internal/store/atomicfile"
)

// Body makes the body of a job unreadable, in a store that is not open: the record gets a wrong size. The body must
// have a key of its own.
func Body(o store.Options, seq uint64) (err error) {
	s, err := store.Open(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	j, err := s.Job(seq)
	if err != nil {
		return err
	}
	if len(j.Body) <= record.InlineBytes {
		return fmt.Errorf("the body of job %d has %d bytes", seq, len(j.Body))
	}
	ch := record.Change{
		Seq: seq, Job: j, Stored: record.Rewritten | record.HasBody, KeepBody: true, BodyBytes: len(j.Body),
	}
	j.Body = append(j.Body, 'x')
	last := s.Position()
	return s.Append(&record.Entry{
		Position: record.Position{Number: last.Number + 1, At: last.At}, Prev: last.Number,
		Batch: &record.CommitBatch{Changes: []record.Change{ch}},
	})
}

// Table flips a bit in a table of a store that is not open: in the nth table by size, counted from 0.
func Table(fsys vfs.FS, dir string, nth int, random *rand.Rand) error {
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	type table struct {
		path string
		data []byte
	}
	var tables []table
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		path := fsys.PathJoin(dir, name)
		data, err := atomicfile.Read(fsys, path)
		if err != nil {
			return err
		}
		tables = append(tables, table{path, data})
	}
	if nth >= len(tables) {
		return fmt.Errorf("%s has %d tables", dir, len(tables))
	}
	slices.SortFunc(tables, func(a, b table) int { return len(b.data) - len(a.data) })
	path, data := tables[nth].path, tables[nth].data
	data[random.IntN(len(data)*9/10)] ^= 1
	f, err := fsys.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Close()
}
