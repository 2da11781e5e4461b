// Package notify wakes goroutines.
package notify

// Signal is a flag that a goroutine can wait for: receiving from it blocks until it is set, and clears it. Setting it
// never blocks, and setting it twice is the same as setting it once.
type Signal chan struct{}

// NewSignal returns a Signal that is not set.
func NewSignal() Signal { return make(Signal, 1) }

// Set sets the signal. Any goroutine may call it.
func (s Signal) Set() {
	select {
	case s <- struct{}{}:
	default:
	}
}
