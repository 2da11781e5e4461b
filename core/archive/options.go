package archive

import (
	"log/slog"
	"time"

	"broker/core"
	"broker/core/clock"
)

// Options of a Writer; zero values mean the defaults.
type Options struct {
	Dir     string // of the archive; made if it is not there
	Scratch string // folder for short-lived copies of the store, where its files can be links: beside the store

	Every         time.Duration // how long a commit may wait until it is shipped; 1 s
	BaseEvery     time.Duration // between base copies; 24 h
	Keep          time.Duration // how far back moments can be restored; 7 days
	MaxQueueBytes int           // memory for entries that are not shipped yet; 64 MiB

	Clock clock.Clock                                        // nil: the real time
	Log   func(level slog.Level, text string, fields ...any) // nil: nobody is interested
}

// segmentBytes is the size from which on another segment is begun.
const segmentBytes = 64 << 20

// Pauses after failures: the first, and the longest.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// Pauses between timelines that end before they have a base copy: the first, and the longest.
const (
	shortestTimeline = 10 * time.Second
	longestWait      = 10 * time.Minute
)

// endWithin bounds how long End waits.
const endWithin = time.Second

// pruneEvery is the time between two searches for what is too old.
const pruneEvery = time.Hour

func (o Options) withDefaults() Options {
	if o.Every <= 0 {
		o.Every = time.Second
	}
	if o.BaseEvery <= 0 {
		o.BaseEvery = 24 * time.Hour
	}
	if o.Keep <= 0 {
		o.Keep = 7 * 24 * time.Hour
	}
	if o.MaxQueueBytes <= 0 {
		o.MaxQueueBytes = 64 << 20
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.Log == nil {
		o.Log = func(slog.Level, string, ...any) {}
	}
	return o
}

// Status is the state of a Writer. Counts are since it began.
type Status struct {
	Dir      string
	Lag      time.Duration // age of the oldest commit that could not be restored; 0: all can be
	Earliest core.Instant  // first moment that can be restored; zero: not known yet
	BaseAt   core.Instant  // of the last entry in the newest base copy; zero: there is none yet
	Copying  bool          // a base copy is being made
	Queued   int           // bytes that wait to be shipped
	Bytes    uint64        // of the folder, about

	Entries, Shipped    uint64 // entries that were shipped, and their bytes
	Bases               uint64 // base copies that were made
	Overflows, Failures uint64 // times that the queue was full; attempts to write that failed
	Error               string // why the folder cannot be written now; empty: it can
}
