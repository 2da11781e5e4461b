package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core/internal/record"
)

const (
	salvageBatch = 4 << 20 // bytes that are written at once
	seekBytes    = 24      // length of the longest prefix of a key with which the end of damage is searched
)

// errOfCluster is returned by Salvage for the store of a node in a cluster, because the other nodes have the lost
// data.
var errOfCluster = errors.New(
	"this store belongs to a node of a cluster; empty its folder and start the node: it gets a copy from the others",
)

// Salvaged is the result of Salvage.
type Salvaged struct {
	Jobs uint64
	Lost []string // lost data, for people
}

// LostJobs are the jobs whose records could not be read.
type LostJobs struct {
	spans []span
	kept  func(seq uint64) bool // jobs of the spans that are not lost; nil: none
}

// span stands for the jobs between two other jobs.
type span struct{ after, before uint64 }

// Has reports whether a job is lost, if it existed.
func (l *LostJobs) Has(seq uint64) bool {
	return slices.ContainsFunc(l.spans, func(s span) bool { return seq > s.after && seq < s.before }) &&
		(l.kept == nil || !l.kept(seq))
}

// Behind reports whether jobs with a greater number than seq are lost.
func (l *LostJobs) Behind(seq uint64) bool {
	return slices.ContainsFunc(l.spans, func(s span) bool { return s.before > seq+1 })
}

// Salvage copies everything that can be read from a damaged store to a new one, in a folder that must not exist yet. It
// does not change the damaged store, which no process may have open. A job whose record is lost is left out with all
// its parts. A job whose body is lost is copied; it moves to the dead set when a worker requests it. mend returns the
// value to copy for a metadata entry that may refer to lost jobs. progress is called from time to time with the number
// of keys read.
func Salvage(
	ctx context.Context, damaged Options, dir string, mend func(name string, value []byte, lost *LostJobs) []byte,
	progress func(keys uint64),
) (Salvaged, error) {
	damaged = damaged.withDefaults()
	v := salvage{ctx: ctx, mend: mend, progress: progress}
	if err := v.openDamaged(damaged); err != nil {
		return Salvaged{}, err
	}
	err := v.copyTo(damaged.FS, dir)
	return v.done, errors.Join(err, v.from.Close())
}

// salvage is one call of Salvage.
type salvage struct {
	from, to *Store
	ctx      context.Context // it lasts as long as the call
	mend     func(string, []byte, *LostJobs) []byte
	progress func(uint64)
	done     Salvaged
	keys     uint64
	batch    []keyValue // not written yet
	size     int        // of batch, in bytes

	job    uint64 // the last job that was copied
	lost   LostJobs
	tables []lostTable
}

type keyValue struct{ key, value []byte }

func (v *salvage) copyTo(fsys vfs.FS, dir string) error {
	if v.from.Cluster() != "" {
		return errOfCluster
	}
	if _, err := fsys.Stat(dir); err == nil {
		return fmt.Errorf("copy to %s: %w", dir, fs.ErrExist)
	}
	return makeCopy(fsys, dir, func(whole string) (err error) {
		if v.to, err = Open(Options{Dir: whole, FS: fsys, copying: true}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, v.to.Close()) }()
		if format := v.from.commit.format.Load(); format > v.to.commit.format.Load() {
			if err := errors.Join(v.to.commit.writeFormat(v.to, format), v.to.writeFormatFile()); err != nil {
				return err
			}
		}
		for _, space := range []byte{spaceJob, spaceBody, spaceMeta, spaceDocument} {
			if err := errors.Join(v.space(space), v.write()); err != nil {
				return err
			}
		}
		v.reportTables()
		return v.breakLost()
	})
}

// breakLost marks jobs that wait for a lost job as broken; otherwise the lost job would count as done.
func (v *salvage) breakLost() error {
	if len(v.lost.spans) == 0 {
		return nil
	}
	it, err := v.to.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceJob}, UpperBound: []byte{spaceJob + 1}})
	if err != nil {
		return fmt.Errorf("read the new store: %w", err)
	}
	var status record.Status
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		seq, part, _ := parseKey(it.Key())
		if part != partStatus {
			continue
		}
		if err = record.DecodeStatus(it.Value(), seq, &status); err != nil {
			break
		}
		before := len(status.Unstored)
		for _, other := range status.Waiting {
			if v.lost.Has(other) && !slices.Contains(status.Unstored, other) {
				status.Unstored = append(status.Unstored, other)
			}
		}
		if len(status.Unstored) > before {
			slices.Sort(status.Unstored)
			value, _ := record.AppendStatus(nil, seq, &status)
			err = v.copy(it.Key(), value)
		}
	}
	if err := errors.Join(err, it.Close()); err != nil {
		return fmt.Errorf("read the new store: %w", err)
	}
	return v.write()
}

// space copies a key space. After damage, it continues with the next readable key.
func (v *salvage) space(space byte) error {
	r := &spaceReader{db: v.from.db, space: space}
	defer r.close()
	last := []byte{space}
	for r.seek(last); ; {
		for ; r.it.Valid(); r.it.Next() {
			value, err := r.it.ValueAndErr()
			if err != nil {
				break
			}
			last = append(last[:0], r.it.Key()...)
			if err := v.take(last, value); err != nil {
				return err
			}
		}
		err := r.it.Error()
		if err == nil {
			return nil
		}
		if !pebble.IsCorruptionError(err) {
			return fmt.Errorf("read the damaged store: %w", err)
		}
		end := []byte{space + 1}
		if r.seekBehind(last); r.it.Valid() {
			end = slices.Clone(r.it.Key())
		}
		v.lose(last, end, err)
	}
}

// spaceReader reads a key space of a damaged store.
type spaceReader struct {
	db    *pebble.DB
	space byte
	it    *pebble.Iterator
}

func (r *spaceReader) close() {
	if r.it != nil {
		_ = r.it.Close() // it returns known damage
	}
}

// seek moves to the first key from key on, and reports whether it met no damage. It uses a new iterator, because after
// damage an iterator does not leave the table.
func (r *spaceReader) seek(key []byte) bool {
	r.close()
	it, err := r.db.NewIter(&pebble.IterOptions{LowerBound: []byte{r.space}, UpperBound: []byte{r.space + 1}})
	if err != nil {
		panic(err) // the options are wrong
	}
	r.it = it
	it.SeekGE(key)
	return it.Error() == nil
}

// seekBehind moves from damage that was met after key to the next key that can be read. A seek into a damaged block is
// slow, so it first finds a prefix of key under which the damage ends, and then searches under that prefix by halving.
func (r *spaceReader) seekBehind(key []byte) {
	prefix := key
	for len(prefix) > 1 && !r.seek(spaceEnd(prefix)) {
		prefix = prefix[:len(prefix)-1]
	}
	good := spaceEnd(prefix)
	for len(prefix) <= max(seekBytes, len(key)) {
		next := r.firstSound(prefix, key)
		if next < 256 {
			good = append(slices.Clone(prefix), byte(next))
		}
		if next == 0 {
			break
		}
		prefix = append(slices.Clone(prefix), byte(next-1)) // the damage ends under it
	}
	r.seek(good)
}

// firstSound is the smallest byte after prefix with which a seek behind key meets no damage; 256: none.
func (r *spaceReader) firstSound(prefix, key []byte) int {
	low, high := 0, 256
	if len(prefix) < len(key) && bytes.HasPrefix(key, prefix) {
		low = int(key[len(prefix)]) + 1
	}
	for low < high {
		middle := (low + high) / 2
		if r.seek(append(slices.Clone(prefix), byte(middle))) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// take copies a key, unless it is a part of a job whose record is lost.
func (v *salvage) take(key, value []byte) error {
	if v.keys++; v.keys%scanTick == 0 {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		if v.progress != nil {
			v.progress(v.keys)
		}
	}
	switch key[0] {
	case spaceJob:
		seq, part, ok := parseKey(key)
		switch {
		case !ok || part != partJob && seq != v.job:
			return nil
		case part == partJob:
			v.job = seq
			v.done.Jobs++
			v.countKept(seq)
		}
	case spaceBody:
		if seq, _, ok := parseKey(key); !ok || v.lost.Has(seq) {
			return nil
		}
	case spaceMeta:
		if !isInternal(key) && v.mend != nil {
			value = v.mend(string(key[1:]), value, &v.lost)
		}
	}
	return v.copy(key, value)
}

func (v *salvage) copy(key, value []byte) error {
	v.batch = append(v.batch, keyValue{slices.Clone(key), slices.Clone(value)})
	if v.size += len(key) + len(value); v.size < salvageBatch {
		return nil
	}
	return v.write()
}

func (v *salvage) write() error {
	err := v.to.apply(func(pb *pebble.Batch) error {
		for _, kv := range v.batch {
			if err := pb.Set(kv.key, kv.value, nil); err != nil {
				return err
			}
		}
		return nil
	})
	v.batch, v.size = v.batch[:0], 0
	return err
}

// lose records that the keys between two other keys could not be read.
func (v *salvage) lose(after, before []byte, err error) {
	text := ""
	switch space := after[0]; space {
	case spaceJob, spaceBody:
		s := span{before: math.MaxUint64}
		if len(after) > 1 {
			s.after, _, _ = parseKey(after)
		}
		if len(before) > 1 {
			part := byte(0)
			if s.before, part, _ = parseKey(before); part != partJob && space == spaceJob {
				s.before++ // the record of that job is lost too
			}
		}
		what := "jobs"
		if space == spaceJob {
			v.lost.spans = append(v.lost.spans, s)
		} else {
			what = "large bodies and outcomes of jobs"
		}
		text = fmt.Sprintf("%s after %d", what, s.after)
		if s.before != math.MaxUint64 {
			text = fmt.Sprintf("%s between %d and %d", what, s.after, s.before)
		}
	case spaceMeta:
		text = named("settings and counters", after, before)
	default:
		text = named("documents", after, before)
	}
	v.done.Lost = append(v.done.Lost, fmt.Sprintf("%s: %v", text, plain(err)))
}

// named says which entries with names could not be read.
func named(what string, after, before []byte) string {
	switch {
	case len(after) == 1 && len(before) == 1:
		return "all " + what
	case len(after) == 1:
		return fmt.Sprintf("%s before %q", what, before[1:])
	case len(before) == 1:
		return fmt.Sprintf("%s after %q", what, after[1:])
	}
	return fmt.Sprintf("%s between %q and %q", what, after[1:], before[1:])
}
