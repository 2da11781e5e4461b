package archive

import (
	"log/slog"
	"time"

	"broker/core/clock"
)

// Options of a Writer; zero values mean the defaults.
type Options struct {
	Dir string // of the archive; created if missing
	// folder only for short-lived copies of the store; on the same file system, so that files can be linked
	Scratch string

	Every         time.Duration // longest time until a commit is shipped; 1 s
	BaseEvery     time.Duration // between base copies; 24 h
	Keep          time.Duration // how far back the store can be restored; 7 days
	MaxQueueBytes int           // memory for entries that are not shipped yet; 64 MiB

	Clock clock.Clock                                        // nil: the system's clock
	Log   func(level slog.Level, text string, fields ...any) // may be nil
}

// segmentBytes is the size at which the next segment is begun.
const segmentBytes = 64 << 20

// Pauses after failures; each is twice as long as the one before.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// Pauses between timelines that end before they have a base copy, likewise.
const (
	firstTimelinePause   = 10 * time.Second
	longestTimelinePause = 10 * time.Minute
)

// endWithin limits how long End waits.
const endWithin = time.Second

// pruneEvery is the time between two searches for old files.
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
