package store

import (
	"errors"
	"fmt"
	"sync"

	"broker/core"
)

// fuse is the one-way switch of a store: once blown it stays so, with the first error as the reason.
type fuse struct {
	once  sync.Once
	blown chan struct{} // closed when blown
	cause error         // set before blown is closed
}

func newFuse() *fuse { return &fuse{blown: make(chan struct{})} }

// blow ends all writing, because of cause, and returns err.
func (f *fuse) blow(cause error) error {
	f.once.Do(func() {
		f.cause = fmt.Errorf("%w: %w", core.ErrStopped, cause)
		close(f.blown)
	})
	return f.cause
}

// err is nil as long as nothing has failed.
func (f *fuse) err() error {
	select {
	case <-f.blown:
		return f.cause
	default:
		return nil
	}
}

// park never returns. What parked goroutines hold (some Pebble state, never its central lock) is lost until the process
// ends; see doc.go for why.
func park() { select {} }

// run calls work, which calls Pebble, on a goroutine of its own and waits for it, or for the fuse: work may then be
// parked for good. Pebble's panics, and its Fatalf, which ends the goroutine, blow the fuse.
func (f *fuse) run(what string, work func() error) error {
	if err := f.err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		err := errGoexit
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("%v", r)
				_ = f.blow(fmt.Errorf("%s: %w", what, err)) // the caller sees it by f.err
			} else if errors.Is(err, errGoexit) {
				err = f.blow(fmt.Errorf("%s: %w", what, err))
			}
			done <- err
		}()
		err = work()
	}()
	select {
	case err := <-done:
		if blown := f.err(); blown != nil && err != nil {
			return blown
		}
		return err
	case <-f.blown:
		return f.cause
	}
}

// errGoexit stands for a goroutine that ended without a result.
var errGoexit = errors.New("ended early")
