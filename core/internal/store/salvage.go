package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core/internal/record"
	"broker/core/internal/store/rescue"
)

const salvageBatch = 4 << 20 // bytes that are written at once

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
	if _, err := damaged.FS.Stat(dir); err == nil {
		return Salvaged{}, fmt.Errorf("copy to %s: %w", dir, fs.ErrExist)
	}
	err := makeCopy(damaged.FS, dir, func(whole string) error {
		if err := v.openDamaged(damaged, damaged.FS.PathDir(whole)); err != nil {
			return err
		}
		return errors.Join(v.copyTo(damaged.FS, whole), v.close())
	})
	return v.done, err
}

// salvage is one call of Salvage.
type salvage struct {
	from     *Store        // the damaged store, if its manifest is intact
	parts    *rescue.Parts // its tables and logs otherwise
	to       *Store
	ctx      context.Context // it lasts as long as the call
	mend     func(string, []byte, *LostJobs) []byte
	progress func(uint64)
	done     Salvaged
	keys     uint64
	batch    []keyValue // not written yet
	size     int        // of batch, in bytes

	job    uint64 // the last job that was copied
	lost   LostJobs
	tables map[uint64]rescue.Table // of the damaged store, by the number of the file
	ranges []lostRange
}

type keyValue struct{ key, value []byte }

// copyTo copies the opened store to a folder.
func (v *salvage) copyTo(fsys vfs.FS, dir string) (err error) {
	if err := v.space(spaceMeta, refuseCluster); err != nil {
		return err
	}
	if v.to, err = Open(Options{Dir: dir, FS: fsys, copying: true}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.to.Close()) }()
	if err := v.space(spaceVersion, v.raiseFormat); err != nil {
		return err
	}
	for _, space := range []byte{spaceJob, spaceBody, spaceMeta, spaceDocument} {
		if err := errors.Join(v.space(space, v.take), v.write()); err != nil {
			return err
		}
	}
	v.reportRanges()
	return v.breakLost()
}

// refuseCluster returns an error for the key of the store of a node in a cluster.
func refuseCluster(key, _ []byte) error {
	if bytes.Equal(key, clusterKey) {
		return errOfCluster
	}
	return nil
}

// raiseFormat gives the new store at least the format of the damaged one. If that is lost, the new store finds out at
// its next start which one its records need.
func (v *salvage) raiseFormat(_, value []byte) error {
	format, w := binary.Uvarint(value)
	if w <= 0 || format <= v.to.commit.format.Load() {
		return nil
	}
	return errors.Join(v.to.commit.writeFormat(v.to, format), v.to.writeFormatFile())
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

// space calls each for the keys of a space of the damaged store.
func (v *salvage) space(space byte, each func(key, value []byte) error) (err error) {
	lower, upper := []byte{space}, []byte{space + 1}
	if v.parts != nil {
		return v.parts.Each(lower, upper, each)
	}
	it, err := v.from.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return fmt.Errorf("read the damaged store: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }() // also an error of reading
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("read the damaged store: %w", err)
		}
		if err := each(it.Key(), value); err != nil {
			return err
		}
	}
	return nil
}

// tick counts a key that was read.
func (v *salvage) tick() error {
	if v.keys++; v.keys%scanTick == 0 {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		if v.progress != nil {
			v.progress(v.keys)
		}
	}
	return nil
}

// take copies a key, unless it is a part of a job whose record is lost.
func (v *salvage) take(key, value []byte) error {
	if err := v.tick(); err != nil {
		return err
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
