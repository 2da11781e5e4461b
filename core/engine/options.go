package engine

import (
	"time"

	"broker/core"
	"broker/core/clock"
	"broker/core/internal/store"
)

// Durability says when a positive reply may leave.
type Durability uint8

// Sync: after its commit is on disk. Relaxed: at once, the commit follows within SyncEvery. None: nothing is stored.
const (
	Sync Durability = iota
	Relaxed
	None
)

// FS is the file system that the store stands on.
type FS = store.FS

// MemoryFS is a file system that lives and dies with the process; for tests.
func MemoryFS() FS { return store.MemoryFS() }

// Options are the engine's tunables; the zero value of each means its default.
type Options struct {
	Dir        string // of the store; must be set unless Durability is None
	FS         FS     // nil: the disk
	Durability Durability

	SyncEvery        time.Duration // Relaxed: the longest time an acknowledged change may be lost for; 100 ms
	LazyEvery        time.Duration // Sync: how long records nobody waits for (leases, progress) may gather; 25 ms
	CacheBytes       int           // payloads of recent jobs kept in memory; 64 MiB
	DefaultLease     time.Duration // of a job without one, in the hands of a worker no connection guards; 30 minutes
	MinFreeDiskBytes uint64        // new jobs are refused while less is free; zero: never
	PoisonAfter      int           // leases of a job in a row that may end without a word, at most 255; negative: no limit
	Wakeup           Wakeup        // how many sleeping Gearman workers a job wakes

	// Replicated makes the engine the leader of a cluster: it works on the store and the journal of its member, and closes
	// neither. Leases are then handed out once they are committed, so that no two leaders hand out a job at once. Dir and FS
	// are not used, Durability must be Sync.
	Replicated *Replicated

	Clock    clock.Clock   // nil: the machine's
	Listener core.Listener // nil: nobody listens
	Seed     uint64        // of back-off jitter and random choice; zero: a random one

	// Progress is called now and then while jobs are read back at start: how many, and what part of the store (0 to 1).
	Progress func(jobs uint64, part float64)

	// ManualTimers and ManualCommits are for tests that decide themselves when deadlines are looked at (Tick) and when
	// the open batch is committed (Flush).
	ManualTimers  bool
	ManualCommits bool
}

// Wakeup is how many sleepers are woken for a job: zero as many as there are jobs, WakeAll all, else at most so many.
type Wakeup int

// WakeAll wakes every sleeper that could take the job.
const WakeAll Wakeup = -1

func (o Options) withDefaults() Options {
	if o.SyncEvery <= 0 {
		o.SyncEvery = 100 * time.Millisecond
	}
	if o.LazyEvery <= 0 {
		o.LazyEvery = 25 * time.Millisecond
	}
	if o.CacheBytes <= 0 {
		o.CacheBytes = 64 << 20
	}
	if o.DefaultLease <= 0 {
		o.DefaultLease = 30 * time.Minute
	}
	if o.PoisonAfter == 0 {
		o.PoisonAfter = core.PoisonAfter
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.Listener == nil {
		o.Listener = core.NopListener{}
	}
	return o
}

// wakeup is the machine's form: -1 as many as jobs, 0 all.
func (w Wakeup) machine() int {
	switch {
	case w == 0:
		return -1
	case w < 0:
		return 0
	}
	return int(w)
}
