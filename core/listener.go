package core

import "time"

// Listener hears of what an operator should know. Methods are called outside the broker's lock and must not block.
// NopListener can be embedded to hear of some only.
type Listener interface {
	// Recovered tells what came back at start, by state, and how long it took.
	Recovered(jobs [len(States) + 1]int, took time.Duration)
	// CommitDone tells the number of records in a batch and how long its write and sync took.
	CommitDone(records int, took time.Duration)
	// ScheduleRan reports a run of a schedule that was due.
	ScheduleRan(ScheduleRun)
	// StoreWarning is the store's word for what an operator might want to know.
	StoreWarning(text string)
	// StoreFailed is the end of taking work.
	StoreFailed(error)
	// ClockSet tells that the wall clock was set, and by how much.
	ClockSet(by time.Duration)
	// DiskFull tells that the floor of free disk space was reached (true) or left (false).
	DiskFull(reached bool, freeBytes uint64)
}

// NopListener hears nothing.
type NopListener struct{}

// Recovered implements Listener.
func (NopListener) Recovered([len(States) + 1]int, time.Duration) {}

// CommitDone implements Listener.
func (NopListener) CommitDone(int, time.Duration) {}

// ScheduleRan implements Listener.
func (NopListener) ScheduleRan(ScheduleRun) {}

// StoreWarning implements Listener.
func (NopListener) StoreWarning(string) {}

// StoreFailed implements Listener.
func (NopListener) StoreFailed(error) {}

// ClockSet implements Listener.
func (NopListener) ClockSet(time.Duration) {}

// DiskFull implements Listener.
func (NopListener) DiskFull(bool, uint64) {}
