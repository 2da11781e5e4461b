package store

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"broker/core/internal/store/integrity"
	"broker/core/internal/store/rescue"
)

// lostRange is a part of a table that cannot be read: a part of its file, or the whole of it. Other tables and the log
// may hold older states of the same keys.
type lostRange struct {
	rescue.Gap
	file  uint64
	bytes uint64 // of the table
	text  string // what is wrong with the file
	space byte   // zero: not known
	span  span   // in the key spaces of jobs
	kept  uint64 // jobs of the span that were copied
}

// tableName is the name of a table's file.
func tableName(number uint64) string { return fmt.Sprintf("%06d%s", number, integrity.TableSuffix) }

// repairTables reads all tables. It replaces those that cannot be read completely.
func (v *salvage) repairTables(fsys *rescue.FS, dir, work string) error {
	files, err := fsys.List(dir)
	if err != nil {
		return err
	}
	v.tables = map[uint64]rescue.Table{}
	for _, name := range files {
		number, err := strconv.ParseUint(strings.TrimSuffix(name, integrity.TableSuffix), 10, 64)
		if err != nil || !strings.HasSuffix(name, integrity.TableSuffix) {
			continue
		}
		path := fsys.PathJoin(dir, name)
		t, err := rescue.ReadTable(fsys, path, func(sstable.InternalKey, []byte) error { return v.tick() })
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		for _, gap := range t.Gaps {
			v.ranges = append(v.ranges, lostRange{Gap: gap, file: number, bytes: t.Bytes, text: gap.Err.Error()})
		}
		if !t.Intact {
			if t.Bytes, err = replaceTable(fsys, path, fsys.PathJoin(work, name)); err != nil {
				return fmt.Errorf("copy what can be read of %s: %w", path, err)
			}
		}
		if t.Keys > 0 {
			v.tables[number] = t
		}
	}
	return nil
}

// replaceTable puts a table with the keys that can be read in the place of a damaged one, and returns its size.
func replaceTable(fsys *rescue.FS, path, with string) (bytes uint64, err error) {
	if err := rescue.Rewrite(fsys, path, with, pebbleFormat.MaxTableFormat()); err != nil {
		return 0, err
	}
	fsys.Replace(path, with)
	info, err := fsys.Stat(path)
	if err != nil {
		return 0, err
	}
	return uint64(info.Size()), nil
}

// loseTables replaces the missing tables that an error of Open names by empty ones. It reports whether the error names
// replaced tables.
func (v *salvage) loseTables(fsys *rescue.FS, dir, work string, err error) (found bool) {
	for _, match := range tablesInError.FindAllStringSubmatch(err.Error(), -1) {
		name := match[1] + integrity.TableSuffix
		path := fsys.PathJoin(dir, name)
		if fsys.Replaced(path) {
			found = true
			continue
		}
		text := "is missing"
		if info, err := fsys.FS.Stat(path); err == nil {
			text = fmt.Sprintf("has %d bytes, which is not its size", info.Size())
		}
		number, err := strconv.ParseUint(match[1], 10, 64)
		if _, writeErr := replaceTable(fsys, path, fsys.PathJoin(work, name)); err != nil || writeErr != nil {
			continue
		}
		v.ranges = append(v.ranges, lostRange{file: number, text: text})
		found = true
	}
	return found
}

// describeRanges finds out which keys were lost, with the bounds of tables in the manifest.
func (v *salvage) describeRanges() error {
	if len(v.ranges) == 0 {
		return nil
	}
	tables := map[uint64]*pebble.SSTableInfo{}
	if v.from != nil {
		levels, err := v.from.db.SSTables()
		if err != nil {
			return fmt.Errorf("list the tables of the damaged store: %w", err)
		}
		for _, level := range levels {
			for i := range level {
				tables[uint64(level[i].BackingSSTNum)] = &level[i]
			}
		}
	}
	ranges := v.ranges[:0]
	for _, r := range v.ranges {
		if t, known := tables[r.file]; known {
			if r.Before == nil && r.After != nil && bytes.Compare(r.After, t.Largest.UserKey) >= 0 {
				continue // the table ends where the damage begins
			}
			r.bytes = max(r.bytes, t.Size)
			r.describe(t.Smallest.UserKey, t.Largest.UserKey)
		} else if r.describe(nil, nil); v.parts == nil {
			continue // no longer in use, or never: a crash left it
		}
		if r.space == spaceVersion || isInternal(r.After) && isInternal(r.Before) {
			continue // FORMAT has the version too, and the new store has a position of its own
		}
		if r.space == spaceJob {
			v.lost.spans = append(v.lost.spans, r.span)
			v.lost.kept = v.hasCopied
		}
		ranges = append(ranges, r)
	}
	v.ranges = ranges
	return nil
}

// describe finds out what keys are in the gap of a table with these bounds; nil: they are not known.
func (r *lostRange) describe(smallest, largest []byte) {
	for _, key := range [][]byte{r.After, r.Before, smallest} {
		if len(key) > 0 {
			r.space = key[0]
		}
	}
	r.span = span{before: math.MaxUint64}
	if r.space != spaceJob && r.space != spaceBody {
		if r.After == nil {
			r.After = smallest
		}
		if r.Before == nil {
			r.Before = largest
		}
		return
	}
	if seq, _, ok := parseKey(r.After); ok {
		r.span.after = seq
	} else if seq, _, ok := parseKey(smallest); ok {
		r.span.after = max(seq, 1) - 1
	}
	if seq, part, ok := parseKey(r.Before); ok {
		r.span.before = seq
		if part != partJob && r.space == spaceJob {
			r.span.before++ // the record of that job is lost too
		}
	} else if seq, _, ok := parseKey(largest); ok {
		r.span.before = seq + 1
	}
}

// countKept counts a copied job for the ranges that may have held a newer state of it.
func (v *salvage) countKept(seq uint64) {
	for i := range v.ranges {
		if r := &v.ranges[i]; r.space == spaceJob && seq > r.span.after && seq < r.span.before {
			r.kept++
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

// reportRanges says what may be lost.
func (v *salvage) reportRanges() {
	for i := range v.ranges {
		r := &v.ranges[i]
		v.done.Lost = append(v.done.Lost,
			fmt.Sprintf("table %s (%d bytes) %s: %s", tableName(r.file), r.bytes, r.text, r.lost()))
	}
}

// lost says what may be lost with a range.
func (r *lostRange) lost() string {
	between := fmt.Sprintf("between %d and %d", r.span.after+1, r.span.before-1)
	if r.span.before == math.MaxUint64 {
		between = fmt.Sprintf("after %d", r.span.after)
	}
	switch r.space {
	case spaceJob:
		jobs := r.span.before - r.span.after - 1
		if jobs == 0 {
			return fmt.Sprintf("job %d may be in an older state", r.span.after)
		}
		text := fmt.Sprintf("up to %d jobs %s are lost", jobs-min(r.kept, jobs), between)
		if r.span.before == math.MaxUint64 {
			text = "jobs " + between + " are lost"
		}
		if r.kept > 0 {
			text += fmt.Sprintf("; %d others there may be in an older state, and jobs that had ended may be back", r.kept)
		}
		return text
	case spaceBody:
		return fmt.Sprintf("large bodies and outcomes of jobs %s may be lost", between)
	case spaceMeta:
		return named("settings and counters", r.After, r.Before)
	case spaceDocument:
		return named("documents", r.After, r.Before)
	}
	return "its records are lost, unless a crash left it unfinished"
}

// named says which entries with names may be lost.
func named(what string, after, before []byte) string {
	text := what
	if len(after) > 1 {
		text += fmt.Sprintf(" from %q", after[1:])
	}
	if len(before) > 1 {
		text += fmt.Sprintf(" to %q", before[1:])
	}
	return text + " may be lost or old"
}
