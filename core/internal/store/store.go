package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/store/atomicfile"
	"broker/core/internal/store/faultfs"
	"broker/core/internal/store/integrity"
)

// FS is the file system of a store.
type FS = vfs.FS

// Options say where the store is and how much memory it may take.
type Options struct {
	Dir      string // created if missing, unless ReadOnly
	FS       FS     // nil: the disk
	ReadOnly bool   // for inspection; the store must exist and no process may have it open

	// Replicated stores write no log of their own, because a replicated log holds every entry. So Apply is durable only
	// after the next Flush.
	Replicated bool

	// MinFreeBytes are to stay free; half of them, at most 48 MiB, are set aside for a start on a full disk. Zero:
	// none.
	MinFreeBytes uint64

	copying   bool // the folder is inside the folder of an unfinished copy
	salvaging bool // open the store although files that GUARD covers, the format version or the position are damaged
	emptied   bool // some tables have another size than the manifest says

	// MemTableBytes is the size of a write buffer, of which two are in use under load. With larger buffers, more jobs
	// come and go without being written to a table. Zero: 16 MiB.
	MemTableBytes int64
	// CacheBytes is the size of the cache for blocks of tables. Zero: 8 MiB.
	CacheBytes int64

	// Warn is called with messages for operators: commits that wait, errors in the background. It is called on any
	// goroutine, must not block and must not call the store. May be nil.
	Warn func(text string)
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
		if abs, err := filepath.Abs(o.Dir); err == nil {
			o.Dir = abs
		}
	}
	if o.MemTableBytes <= 0 {
		o.MemTableBytes = defaultMemTableBytes
	}
	o.MemTableBytes = max(o.MemTableBytes, minMemTableBytes)
	if o.CacheBytes <= 0 {
		o.CacheBytes = defaultCacheBytes
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	o.Dir = o.FS.PathDir(o.FS.PathJoin(o.Dir, integrity.LockFile)) // spelled like the beginning of file paths
	return o
}

// Store keeps jobs and metadata entries. Any goroutine may call its methods; commits are serialized.
type Store struct {
	dir        string
	readOnly   bool
	replicated bool
	created    bool // Open found no store in the folder
	warn       func(string)
	latch      *faultfs.Latch
	disk       vfs.FS      // below fs
	fs         *faultfs.FS // the file system that Pebble uses
	lock       io.Closer
	db         *pebble.DB

	unguarded error // with Options.salvaging: GUARD says that files have lost something

	damaged atomic.Pointer[string] // file in which Pebble last found damage
	stalls  atomic.Uint64
	metrics atomic.Pointer[core.Storage] // the last metrics

	commit committer

	use useGuard // around every use of db
}

// Open opens or creates the store in a folder. Errors to distinguish: ErrInUse, record.ErrNewerFormat, ErrHalfCopy,
// ErrNoStore (with ReadOnly only), *DamageError.
func Open(o Options) (*Store, error) {
	o = o.withDefaults()
	s := &Store{
		dir:        o.Dir,
		readOnly:   o.ReadOnly,
		replicated: o.Replicated,
		warn:       o.Warn,
		disk:       o.FS,
		latch:      faultfs.NewLatch(),
	}
	s.fs = faultfs.New(o.FS, o.Dir, s.latch, compactionRoom(o.MemTableBytes))
	if err := s.open(o); err != nil {
		var damage *DamageError
		if errors.As(err, &damage) {
			damage.Locate(o.FS, o.Dir)
		}
		return nil, err
	}
	return s, nil
}

// Created reports whether Open found no store in the folder and made an empty one.
func (s *Store) Created() bool { return s.created }

// open is the part of Open that needs the folder. After an error, nothing stays locked.
func (s *Store) open(o Options) (err error) {
	if !o.copying && isUnfinished(o.FS, o.Dir) {
		return fmt.Errorf("%s: %w", o.Dir, ErrHalfCopy)
	}
	if !o.ReadOnly {
		if err := atomicfile.MakeDir(o.FS, o.Dir); err != nil {
			return fmt.Errorf("make store folder %s: %w", o.Dir, err)
		}
	}
	if s.lock, err = integrity.LockDir(o.FS, o.Dir); err != nil {
		return err
	}
	opened := false // a pebble.Open that the latch has blocked may still write s.db
	defer func() {
		switch { // the first error is more precise
		case err != nil && !opened:
			_ = s.lock.Close()
		case err != nil:
			_ = s.Close()
		}
	}()
	found, err := integrity.Scan(o.FS, o.Dir, &s.fs.Guard)
	if damage := (*DamageError)(nil); o.salvaging && errors.As(err, &damage) && found.Manifest != "" {
		s.unguarded, err = err, nil
	}
	if err != nil {
		return err
	}
	if found.Manifest == "" && o.ReadOnly {
		return fmt.Errorf("%s: %w", o.Dir, ErrNoStore)
	}
	if found.NewestLog != "" {
		if err := integrity.CheckLogTail(o.FS, o.FS.PathJoin(o.Dir, found.NewestLog), found.LogBytes); err != nil {
			return err
		}
	}
	if !o.ReadOnly {
		s.useReserve(o.MinFreeBytes)
	}
	err = s.latch.Run("open store", func() error {
		return s.settled(func() (err error) {
			s.db, err = pebble.Open(o.Dir, s.tuned(o))
			return err
		})
	})
	if err != nil {
		return s.openError(err)
	}
	opened = true
	if !o.ReadOnly {
		s.commit.start(s)
	}
	for _, read := range []func() error{func() error { return s.checkFormat(found) }, s.readPosition} {
		var damage *DamageError
		if err := read(); err != nil && !(o.salvaging && errors.As(err, &damage)) {
			return err
		}
	}
	return nil
}

// settled runs work that may create a log, and waits until GUARD names it.
func (s *Store) settled(work func() error) error {
	err := work()
	s.fs.WaitGuard()
	return err
}

// openError distinguishes damage from errors of the machine, and names the damaged file, which Pebble does not always
// do.
func (s *Store) openError(err error) error {
	var errno syscall.Errno
	if s.latch.Err() != nil || errors.As(err, &errno) && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open store %s: %w", s.dir, err)
	}
	damage := &DamageError{What: "open store " + s.dir, Err: plain(err)}
	if p := s.fs.LastOpened(); p != "" && pebble.IsCorruptionError(err) {
		damage.Path = p
	} else if table := tablesInError.FindStringSubmatch(err.Error()); table != nil {
		damage.Path = s.fs.PathJoin(s.dir, table[1]+integrity.TableSuffix)
	}
	return damage
}

// tablesInError finds the numbers of missing and cut tables, which are only in the text of Pebble's error.
var tablesInError = regexp.MustCompile(`L\d: (\d{6,}): `)

// checkFormat checks the 'v' key, or writes it and FORMAT to a new store.
func (s *Store) checkFormat(found integrity.DirState) error {
	s.commit.format.Store(found.Format) // of a store that is salvaged, it may be all that remains
	value, err := s.get([]byte{spaceVersion})
	switch {
	case errors.Is(err, ErrMissing):
		if err := s.checkNew(found); err != nil {
			return err
		}
		if err := s.commit.writeFormat(s, integrity.BaseFormat); err != nil {
			return err
		}
		s.created = true
		// The first log of a new store has an old format, in which damage looks like a torn tail. This starts the next
		// one.
		if err := s.latch.Run("start a log", func() error { return s.settled(s.db.Flush) }); err != nil {
			return err
		}
	case err != nil:
		return s.damage("read the format version", err)
	default:
		n, w := binary.Uvarint(value)
		if w <= 0 {
			return s.damage("read the format version", record.ErrTruncated)
		}
		if err := integrity.CheckFormat(n); err != nil {
			return fmt.Errorf("store folder %s: %w", s.dir, err)
		}
		s.commit.format.Store(max(n, found.Format))
		if n < integrity.BaseFormat && !s.readOnly {
			// The upgrade: every record of an older format is valid in this one.
			if err := s.commit.writeFormat(s, integrity.BaseFormat); err != nil {
				return err
			}
		}
	}
	if s.readOnly || found.Format == s.commit.format.Load() {
		return nil
	}
	return s.writeFormatFile()
}

// checkNew distinguishes a store that was never used from one that lost its log.
func (s *Store) checkNew(found integrity.DirState) error {
	lost := integrity.Damaged(s.fs.PathJoin(s.dir, "*"+integrity.LogSuffix), "look for the format version",
		errors.New("it is missing, and so are the newest commits"))
	if found.Format > 0 {
		return lost
	}
	if s.readOnly {
		return fmt.Errorf("%s: %w", s.dir, ErrNoStore)
	}
	it, err := s.db.NewIter(nil)
	if err != nil {
		return s.damage("look for jobs", err)
	}
	used := it.First()
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return s.damage("look for jobs", err)
	}
	if used {
		return lost
	}
	return nil
}

// Failed is closed when a write, a sync or a compaction has failed; Err then returns the reason. Reads continue.
func (s *Store) Failed() <-chan struct{} { return s.latch.Tripped() }

// Err is nil until the store fails, then the error that every Append and Apply returns.
func (s *Store) Err() error { return s.latch.Err() }

// Close waits for calls in progress and releases the folder. After a failure, Pebble stays blocked and keeps its
// memory, since the process is about to end. Further calls do nothing.
func (s *Store) Close() error {
	if !s.use.close() {
		return nil
	}
	s.commit.stop()
	err := s.latch.Run("close store", func() error {
		if s.replicated && !s.readOnly {
			if err := s.db.Flush(); err != nil {
				return err
			}
		}
		if err := s.settled(s.db.Close); err != nil || s.readOnly {
			return err
		}
		s.fs.WriteGuard() // the last log is complete now
		return nil
	})
	return errors.Join(err, s.lock.Close())
}

// damage turns a read error into a *DamageError if it means damage.
func (s *Store) damage(what string, err error) error {
	var known *DamageError
	if err == nil || errors.As(err, &known) || errors.Is(err, ErrMissing) {
		return err
	}
	if errors.Is(err, record.ErrNewerFormat) {
		return fmt.Errorf("store folder %s: %w", s.dir, err)
	}
	path := ""
	if pebble.IsCorruptionError(err) {
		if p := s.damaged.Load(); p != nil {
			path = *p
		}
	} else if !record.IsInvalid(err) {
		return fmt.Errorf("%s: %w", what, err)
	}
	e := &DamageError{Path: path, What: what, Err: plain(err)}
	e.Locate(s.disk, s.dir)
	return e
}

// plain returns the cause in an error of Pebble about damage, without the internal details around it.
func plain(err error) error {
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil && info.Details != nil {
		return info.Details
	}
	return err
}
