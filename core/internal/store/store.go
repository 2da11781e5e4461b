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
)

// Options say where the store is and how much memory it may take.
type Options struct {
	Dir      string // made if it is not there, unless ReadOnly
	FS       vfs.FS // nil: the disk
	ReadOnly bool   // for inspection; the store must exist and nobody may have it open

	// MemTableBytes is the size of a write buffer, of which two are in use under load. Larger ones let more jobs come
	// and go without ever reaching a table. Zero: 16 MiB.
	MemTableBytes int64
	// CacheBytes is kept for blocks of tables that were read. Zero: 8 MiB.
	CacheBytes int64

	// Warn hears of what an operator might want to know: commits that wait, errors in the background. Any goroutine; it
	// must not block and must not call the store. Nil: nobody hears.
	Warn func(text string)
}

// Store keeps jobs and marks. Commit is for one goroutine at a time, everything else for any number.
type Store struct {
	dir      string
	readOnly bool
	warn     func(string)
	fuse     *fuse
	fs       *failStop
	lock     io.Closer
	db       *pebble.DB

	damaged atomic.Pointer[string] // file in which Pebble last found damage
	stalls  atomic.Uint64
	metrics atomic.Pointer[Metrics] // the last ones

	commit committer

	gate gate // those who use db are inside
}

// Open opens or makes the store in a folder. The errors worth telling apart: ErrInUse, ErrNewerFormat, ErrHalfCopy,
// ErrNoStore (with ReadOnly only), *DamageError.
func Open(o Options) (*Store, error) {
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
	o.Dir = o.FS.PathDir(o.FS.PathJoin(o.Dir, lockFile)) // in the spelling that paths of files start with
	f := newFuse()
	s := &Store{
		dir:      o.Dir,
		readOnly: o.ReadOnly,
		warn:     o.Warn,
		fuse:     f,
		fs:       &failStop{FS: o.FS, fuse: f, dir: o.Dir, room: mergeRoom(o.MemTableBytes)},
	}
	if err := s.open(o); err != nil {
		return nil, err
	}
	return s, nil
}

// open does what needs the folder; on an error it leaves nothing locked.
func (s *Store) open(o Options) (err error) {
	if isUnfinished(o.FS, o.Dir) {
		return fmt.Errorf("%s: %w", o.Dir, ErrHalfCopy)
	}
	if !o.ReadOnly {
		if err := makeDir(o.FS, o.Dir); err != nil {
			return fmt.Errorf("make store folder %s: %w", o.Dir, err)
		}
	}
	if s.lock, err = lockDir(o.FS, o.Dir); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = s.lock.Close() // the first error says more
		}
	}()
	found, err := look(o.FS, o.Dir, &s.fs.guard)
	if err != nil {
		return err
	}
	if found.manifest == "" && o.ReadOnly {
		return fmt.Errorf("%s: %w", o.Dir, ErrNoStore)
	}
	err = s.fuse.run("open store", func() error {
		return s.settled(func() (err error) {
			s.db, err = pebble.Open(o.Dir, s.tuned(o))
			return err
		})
	})
	if err != nil {
		return s.openError(err)
	}
	if !o.ReadOnly {
		s.commit.start(s)
	}
	if err := s.checkVersion(found); err != nil {
		_ = s.Close() // the first error says more
		return err
	}
	return nil
}

// settled does work that may make a log, and waits until that is guarded.
func (s *Store) settled(work func() error) error {
	err := work()
	s.fs.guarding.Wait()
	return err
}

// openError tells damage from what has to do with the machine, and names the file to blame, which Pebble leaves out at
// times.
func (s *Store) openError(err error) error {
	var errno syscall.Errno
	if s.fuse.err() != nil || errors.As(err, &errno) && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open store %s: %w", s.dir, err)
	}
	damage := &DamageError{What: "open store " + s.dir, Err: err}
	if p := s.fs.opened.Load(); p != nil && pebble.IsCorruptionError(err) {
		damage.Path = *p
	} else if table := tableInError.FindStringSubmatch(err.Error()); table != nil {
		damage.Path = s.fs.PathJoin(s.dir, table[1]+tableSuffix)
	}
	return damage
}

// tableInError finds the number of a table that is not there, which Pebble tells in words only.
var tableInError = regexp.MustCompile(`L\d: (\d{6,}): `)

// checkVersion judges the 'v' key, or writes it into a new store, and then FORMAT.
func (s *Store) checkVersion(found survey) error {
	value, err := s.get([]byte{spaceVersion})
	switch {
	case errors.Is(err, ErrMissing):
		if err := s.mustBeNew(found); err != nil {
			return err
		}
		if err := s.commit.writeVersion(s); err != nil {
			return err
		}
		// The first log of a new store is of an old format, in which damage looks like a torn end. This starts the next.
		if err := s.fuse.run("start a log", func() error { return s.settled(s.db.Flush) }); err != nil {
			return err
		}
	case err != nil:
		return s.damage("read the format version", err)
	default:
		n, w := binary.Uvarint(value)
		if w <= 0 {
			return s.damage("read the format version", errCut)
		}
		if err := checkFormat(n); err != nil {
			return fmt.Errorf("store folder %s: %w", s.dir, err)
		}
	}
	if found.format || s.readOnly {
		return nil
	}
	return s.fuse.run("write "+formatFile, func() error { return writeFormatFile(s.fs, s.dir) })
}

// mustBeNew tells a store that has never been used from one that has lost its log.
func (s *Store) mustBeNew(found survey) error {
	lost := damaged(s.fs.PathJoin(s.dir, "*"+logSuffix), "look for the format version",
		errors.New("it is gone, and so are the newest commits"))
	if found.format {
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

// Failed is closed when a write, a sync or a merge of tables has failed; Err then tells what. Reads go on.
func (s *Store) Failed() <-chan struct{} { return s.fuse.blown }

// Err is nil, or the error that every Commit returns.
func (s *Store) Err() error { return s.fuse.err() }

// Close waits for those who read, and gives the folder back. After a failure it leaves Pebble as it is, stuck, and the
// memory with it: the process is about to end. Further calls do nothing.
func (s *Store) Close() error {
	if !s.gate.shut() {
		return nil
	}
	s.commit.stop()
	err := s.fuse.run("close store", func() error {
		if err := s.settled(s.db.Close); err != nil || s.readOnly {
			return err
		}
		return s.fs.writeGuard() // the last log is full now
	})
	return errors.Join(err, s.lock.Close())
}

// damage makes a *DamageError of an error that comes from reading, unless it is of another kind.
func (s *Store) damage(what string, err error) error {
	var known *DamageError
	if err == nil || errors.As(err, &known) || errors.Is(err, ErrMissing) {
		return err
	}
	if errors.Is(err, ErrNewerFormat) {
		return fmt.Errorf("store folder %s: %w", s.dir, err)
	}
	path := ""
	if pebble.IsCorruptionError(err) {
		if p := s.damaged.Load(); p != nil {
			path = *p
		}
	} else if !isRecordError(err) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return &DamageError{Path: path, What: what, Err: err}
}

// isRecordError reports whether a decoder gave err.
func isRecordError(err error) bool {
	return errors.Is(err, errCut) || errors.Is(err, errTrailing) || errors.Is(err, errRange) ||
		errors.Is(err, errFields)
}
