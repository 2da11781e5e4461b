package integrity

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core/internal/record"
	"broker/core/shellword"
)

// Reasons why a folder cannot be used as it is.
var (
	ErrNoStore = errors.New("there is no store in this folder")
	ErrInUse   = errors.New("store is in use by another process")
)

// DamageError means that data on disk is damaged.
type DamageError struct {
	Dir  string // the folder of the store; empty: not known
	New  string // a folder that does not exist yet, for what can be read
	Path string // the file, as far as known
	What string // what was being read
	Err  error
}

// Locate sets the folder of the store.
func (e *DamageError) Locate(fsys vfs.FS, dir string) { e.Dir, e.New = dir, NewFolder(fsys, dir) }

// NewFolder is the name of a folder beside a damaged store's that does not exist yet.
func NewFolder(fsys vfs.FS, dir string) string {
	for n := 1; ; n++ {
		name := dir + "-salvaged"
		if n > 1 {
			name = fmt.Sprintf("%s%d", name, n)
		}
		if _, err := fsys.Stat(name); err != nil {
			return name
		}
	}
}

// Remedy is the advice for every kind of damage of the store in a folder: a command that copies what can be read to
// another one.
func Remedy(dir, to string) string {
	return "restore the folder from a backup or an archive, or copy what can be read with " +
		"broker doctor --salvage " + shellword.Quote(cmp.Or(to, "NEW-FOLDER")) + " " +
		shellword.Quote(cmp.Or(dir, "FOLDER"))
}

// Cause says what is damaged, without what to do.
func (e *DamageError) Cause() error {
	where := e.Path
	if where == "" {
		where = "a file of the store"
	}
	return fmt.Errorf("%s is damaged or missing (%s: %w)", where, e.What, e.Err)
}

func (e *DamageError) Error() string { return fmt.Sprintf("%v; %s", e.Cause(), Remedy(e.Dir, e.New)) }

func (e *DamageError) Unwrap() error { return e.Err }

// Damaged returns a *DamageError, unless err says that a newer broker wrote the file.
func Damaged(path, what string, err error) error {
	if errors.Is(err, record.ErrNewerFormat) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return &DamageError{Path: path, What: what, Err: err}
}
