package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/store/atomicfile"
	"broker/core/internal/store/integrity"
)

// unfinished is the suffix of the folder in which a copy is made. Only a complete copy gets its final name, so that a
// crash leaves nothing that looks like a store.
const unfinished = ".unfinished"

// unfinishedFile marks that folder until it is removed: half a copy looks like a store without its newest commits.
const unfinishedFile = "UNFINISHED"

// isUnfinished reports whether dir is the folder of an unfinished copy, or inside such a folder.
func isUnfinished(fsys vfs.FS, dir string) bool {
	for _, d := range []string{dir, fsys.PathDir(dir)} {
		if _, err := fsys.Stat(fsys.PathJoin(d, unfinishedFile)); err == nil {
			return true
		}
	}
	return false
}

// Checkpoint copies the current state of the store to a folder that must not exist yet, while commits continue. Tables
// are hard links where the file system supports them. An error concerns the copy only.
func (s *Store) Checkpoint(dir string) error {
	if !s.use.enter() {
		return ErrClosed
	}
	defer s.use.leave()
	if s.disk == vfs.Default {
		if abs, err := filepath.Abs(dir); err == nil {
			dir = abs
		}
	}
	dir = s.fs.PathDir(s.fs.PathJoin(dir, integrity.LockFile))
	if s.fs.Inside(dir) {
		return fmt.Errorf("copy store to %s: the folder must be outside of the store's own", dir)
	}
	if _, err := s.fs.Stat(dir); err == nil {
		return fmt.Errorf("copy store to %s: %w", dir, fs.ErrExist)
	}
	if err := s.latch.Run("copy store", func() error { return s.copyTo(dir) }); err != nil {
		return fmt.Errorf("copy store to %s: %w", dir, err)
	}
	return nil
}

// copyTo makes the copy.
func (s *Store) copyTo(dir string) error {
	atLeast := s.Position()
	return makeCopy(s.fs, dir, func(whole string) error {
		if s.replicated {
			if err := s.db.Flush(); err != nil { // a replicated store has no log to copy
				return err
			}
		}
		format := s.commit.format.Load() // the copy may have a newer one; then its next start completes the file
		if err := s.db.Checkpoint(whole); err != nil {
			return err
		}
		if s.disk == vfs.Default {
			if err := os.Chmod(whole, 0o700); err != nil {
				return err
			}
		}
		// The newest log may have been copied in the middle of a write.
		if err := integrity.TrimNewestLog(s.fs, whole); err != nil {
			return err
		}
		err := integrity.WriteForCopy(s.fs, whole)
		if err = errors.Join(err, integrity.WriteFormatFile(s.fs, whole, format)); err != nil {
			return err
		}
		return reaches(Options{Dir: whole, FS: s.disk, ReadOnly: true, copying: true}, atLeast)
	})
}

// reaches checks that a copy can be opened and has a commit and all before it.
func reaches(copied Options, atLeast record.Position) error {
	c, err := Open(copied)
	if err != nil {
		return err
	}
	at := c.Position()
	if err := c.Close(); err != nil {
		return err
	}
	if at.Number < atLeast.Number {
		return integrity.Damaged(copied.Dir, "open the copy",
			fmt.Errorf("it ends at commit %d, the store was at %d", at.Number, atLeast.Number))
	}
	return nil
}

// makeCopy makes a copy inside a private folder, because Pebble creates folders that all users can read. The copy gets
// its name once it is complete.
func makeCopy(fsys vfs.FS, dir string, fill func(whole string) error) (err error) {
	work := dir + unfinished
	if _, err := fsys.Stat(work); err == nil {
		return fmt.Errorf("%s is left from a copy that was interrupted; remove it: %w", work, fs.ErrExist)
	}
	if err := atomicfile.MakeDir(fsys, work); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fsys.RemoveAll(work)) }()
	if err := atomicfile.Write(fsys, work, unfinishedFile, "a copy of a broker store was begun here\n"); err != nil {
		return err
	}
	whole := fsys.PathJoin(work, "store")
	if err := fill(whole); err != nil {
		return err
	}
	if err := fsys.Rename(whole, dir); err != nil {
		return err
	}
	return atomicfile.SyncDir(fsys, fsys.PathDir(dir))
}

// CopiedBytes returns how many bytes Checkpoint has copied to dir so far.
func (s *Store) CopiedBytes(dir string) (n uint64) {
	whole := s.fs.PathJoin(dir+unfinished, "store")
	names, err := s.fs.List(whole)
	if err != nil {
		return 0 // the copy has not begun, or is complete
	}
	for _, name := range names {
		if info, err := s.fs.Stat(s.fs.PathJoin(whole, name)); err == nil {
			n += uint64(max(info.Size(), 0))
		}
	}
	return n
}

// CopyStopped is Checkpoint for a store that no process has open.
func CopyStopped(from Options, dir string) error {
	check := from
	check.ReadOnly = true // so that no store is created
	s, err := Open(check)
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	if s, err = Open(from); err != nil {
		return err
	}
	return errors.Join(s.Checkpoint(dir), s.Close())
}

// FreeBytes returns the disk space available to this process, or errors.ErrUnsupported if the file system does not
// report it.
func (s *Store) FreeBytes() (uint64, error) {
	usage, err := s.disk.GetDiskUsage(s.dir)
	if errors.Is(err, vfs.ErrUnsupported) {
		err = errors.ErrUnsupported
	}
	if err != nil {
		return 0, fmt.Errorf("free space of %s: %w", s.dir, err)
	}
	return usage.AvailBytes, nil
}

// Metrics returns the figures that Pebble has; FreeBytes, Archive, Commits and Syncs are not set. It may take as long
// as a lookup; call it once a second, not for every job. After a failure, Pebble may be blocked, so it returns the last
// figures from before.
func (s *Store) Metrics() core.Storage {
	if !s.use.enter() {
		return core.Storage{}
	}
	defer s.use.leave()
	_ = s.latch.Run("read metrics", func() error { // without metrics there is nothing to return
		m := snapshot(s.db.Metrics(), s.stalls.Load())
		s.metrics.Store(&m)
		return nil
	})
	if m := s.metrics.Load(); m != nil {
		return *m
	}
	return core.Storage{}
}

func snapshot(m *pebble.Metrics, stalls uint64) core.Storage {
	out := core.Storage{
		DiskBytes:         m.DiskSpaceUsage(),
		LogBytes:          m.WAL.Size,
		MemTableBytes:     m.MemTable.Size + m.MemTable.ZombieSize,
		CacheBytes:        uint64(max(m.BlockCache.Size, 0)),
		CacheHits:         uint64(max(m.BlockCache.Hits, 0)),
		CacheMisses:       uint64(max(m.BlockCache.Misses, 0)),
		ReadAmplification: m.ReadAmp(),
		Flushes:           uint64(max(m.Flush.Count, 0)),
		Compactions:       uint64(max(m.Compact.Count, 0)),
		CompactionDebt:    m.Compact.EstimatedDebt,
		WriteStalls:       stalls,
	}
	for i := range m.Levels {
		l := &m.Levels[i]
		level := core.StorageLevel{Tables: uint64(max(l.TablesCount, 0)), Bytes: uint64(max(l.TablesSize, 0))}
		out.Levels = append(out.Levels, level)
		out.Tables += level.Tables
		out.LiveBytes += level.Bytes
		out.FlushedBytes += l.TableBytesFlushed
		out.CompactedBytes += l.TableBytesCompacted
	}
	return out
}
