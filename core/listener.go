package core

import "time"

// Listener receives events that operators should know about. Its methods are called outside the broker's lock and must
// not block. Embed NopListener to implement only some of them.
type Listener interface {
	// StoreCreated reports that a folder had no store, and that it has an empty one now. Recovered follows.
	StoreCreated(dir string)
	// Recovered reports the jobs found at start, by state, and how long recovery took.
	Recovered(jobs [len(States) + 1]int, took time.Duration)
	// CommitDone reports the number of records in a batch and how long its write and sync took.
	CommitDone(records int, took time.Duration)
	// CommitSlow reports a commit that is still being written after so long: the disk, or a majority of a cluster, is
	// slow. It is called once for each such commit.
	CommitSlow(after time.Duration)
	// ScheduleRan reports the result of a schedule's run that was due.
	ScheduleRan(ScheduleRun)
	// StoreWarning reports a problem of the store that needs no immediate action.
	StoreWarning(text string)
	// StoreFailed reports that the store has failed and the broker accepts no more work.
	StoreFailed(error)
	// JobDamaged reports a job that the store cannot read; it is called once for each job. A worker that was to get
	// the job gets another one.
	JobDamaged(seq uint64, err error)
	// ClockSet reports that the wall clock jumped, and by how much.
	ClockSet(by time.Duration)
	// DiskFull reports that free disk space fell below the minimum (true) or rose above it again (false).
	DiskFull(reached bool, freeBytes uint64)
}

// NopListener ignores all events.
type NopListener struct{}

// StoreCreated implements Listener.
func (NopListener) StoreCreated(string) {}

// Recovered implements Listener.
func (NopListener) Recovered([len(States) + 1]int, time.Duration) {}

// CommitDone implements Listener.
func (NopListener) CommitDone(int, time.Duration) {}

// CommitSlow implements Listener.
func (NopListener) CommitSlow(time.Duration) {}

// ScheduleRan implements Listener.
func (NopListener) ScheduleRan(ScheduleRun) {}

// StoreWarning implements Listener.
func (NopListener) StoreWarning(string) {}

// StoreFailed implements Listener.
func (NopListener) StoreFailed(error) {}

// JobDamaged implements Listener.
func (NopListener) JobDamaged(uint64, error) {}

// ClockSet implements Listener.
func (NopListener) ClockSet(time.Duration) {}

// DiskFull implements Listener.
func (NopListener) DiskFull(bool, uint64) {}
