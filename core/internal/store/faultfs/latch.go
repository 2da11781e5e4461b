package faultfs

import (
	"errors"
	"fmt"
	"sync"

	"broker/core"
)

// Latch is the failure latch of a store: once tripped it stays so, with the first error as the reason.
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

// block never returns. Whatever blocked goroutines hold (some of Pebble's state, never its central lock) is lost until the
// process ends.
func block() { select {} }

// Run calls work, which calls Pebble, on a goroutine of its own and waits for it or for the latch: work may be blocked
// forever then. A panic of Pebble, or its Fatalf, which ends the goroutine, trips the latch.
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
