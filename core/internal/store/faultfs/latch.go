package faultfs

import (
	"errors"
	"fmt"
	"sync"

	"broker/core"
)

// Latch is the failure latch of a store: once tripped, it stays tripped, with the first error as the reason.
type Latch struct {
	once    sync.Once
	tripped chan struct{} // closed by Trip
	cause   error         // set before tripped is closed
}

// NewLatch returns a latch that has not been tripped.
func NewLatch() *Latch { return &Latch{tripped: make(chan struct{})} }

// Trip stops all writing because of cause. It returns the error of the first call, which wraps core.ErrStopped.
func (l *Latch) Trip(cause error) error {
	l.once.Do(func() {
		l.cause = fmt.Errorf("%w: %w", core.ErrStopped, cause)
		close(l.tripped)
	})
	return l.cause
}

// Tripped is closed by Trip.
func (l *Latch) Tripped() <-chan struct{} { return l.tripped }

// Err is nil until the latch is tripped.
func (l *Latch) Err() error {
	select {
	case <-l.tripped:
		return l.cause
	default:
		return nil
	}
}

// block never returns. The state that blocked goroutines hold (some of Pebble's, never its central lock) is unusable
// until the process ends.
func block() { select {} }

// Run calls work, which calls Pebble, on a goroutine of its own and waits until work returns or the latch is tripped;
// in the latter case, work may be blocked forever. A panic in Pebble trips the latch, and so does its Fatalf, which
// ends the goroutine.
func (l *Latch) Run(what string, work func() error) error {
	if err := l.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		err := errGoexit
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("%v", r)
				_ = l.Trip(fmt.Errorf("%s: %w", what, err)) // the caller gets it from Err
			} else if errors.Is(err, errGoexit) {
				err = l.Trip(fmt.Errorf("%s: %w", what, err))
			}
			done <- err
		}()
		err = work()
	}()
	select {
	case err := <-done:
		if failed := l.Err(); failed != nil && err != nil {
			return failed
		}
		return err
	case <-l.tripped:
		return l.cause
	}
}

// errGoexit stands for a goroutine that ended without a result.
var errGoexit = errors.New("goroutine exited early")
