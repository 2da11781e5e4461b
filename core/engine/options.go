package engine

import (
	"math/rand/v2"
	"time"

	"broker/core"
	"broker/core/clock"
	"broker/core/internal/machine"
	"broker/core/internal/store"
)

// Durability says when a positive reply may leave.
type Durability uint8

// Sync: after its commit is on disk. Relaxed: at once; the commit follows within SyncEvery. None: nothing is stored.
const (
	Sync Durability = iota
	Relaxed
	None
)

// Options of the engine; zero values mean the defaults.
type Options struct {
	Dir        string   // of the store; must be set unless Durability is None
	FS         store.FS // nil: the disk
	Durability Durability

	SyncEvery        time.Duration // Relaxed: longest time until an acknowledged change is on disk; 100 ms
	HangAfter        time.Duration // a commit that takes longer counts as a failure of the disk; 30 s
	CacheBytes       int           // payloads of recent jobs kept in memory; 64 MiB
	DefaultLease     time.Duration // for a job without LeaseFor that no connection holds; 30 minutes
	MinFreeDiskBytes uint64        // new jobs are refused while less space is free; zero: never
	// leases of a job in a row that may end without a reply, at most 255; negative: no limit
	PoisonAfter int
	Wakeup      Wakeup // how many sleeping Gearman workers a job wakes

	// Replicated makes the engine the leader of a cluster: it uses the store and the journal of its member, and closes
	// neither. No reply then comes from a replaced leader: see confirm.go. Dir and FS are not used, Durability must be
	// Sync.
	Replicated *Replicated

	Archive Shipper // gets all entries; may be nil. Not used with Durability None

	Clock    clock.Clock   // nil: the system's clock; Replicated.Time replaces it
	Listener core.Listener // nil: none
	Seed     uint64        // of backoff jitter and random choices; zero: random

	// Progress is called from time to time during recovery, with the number of jobs and the share of the store that
	// was read (0 to 1).
	Progress func(jobs uint64, part float64)

	// Resumes lets clients continue leases of the previous process or leader until Engine.Settle, which must be called.
	Resumes bool

	// ManualTimers and ManualCommits are for tests that call Tick and Flush themselves.
	ManualTimers  bool
	ManualCommits bool

	LinkStep int // for tests: how many dependents of a job that ends are told at once; zero: the usual number
}

// Wakeup is how many sleeping workers to wake; zero: one per job; negative: all that could take the job.
type Wakeup int

func (o Options) withDefaults() Options {
	if o.SyncEvery <= 0 {
		o.SyncEvery = 100 * time.Millisecond
	}
	if o.HangAfter <= 0 {
		o.HangAfter = 30 * time.Second
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

// machine converts to the machine's form; -1: one per job; 0: all.
func (w Wakeup) machine() int {
	switch {
	case w == 0:
		return -1
	case w < 0:
		return 0
	}
	return int(w)
}

// replicatedUnstored limits the bytes that a leader accepts before they are on disk. Until then a batch is in memory
// about five times: as records, as an entry, in parts for the followers, in the log, and when a node applies it.
const replicatedUnstored = 192 << 20

// time returns the time of the jobs.
func (o *Options) time() *clock.Slewed {
	if o.Replicated != nil && o.Replicated.Time != nil {
		return o.Replicated.Time
	}
	return clock.NewSlewed(o.Clock)
}

// machine converts to the options of a machine that starts now.
func (o *Options) machine(now core.Instant) machine.Options {
	seed := o.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	unstored, format, term := 0, (func() int)(nil), uint64(0)
	if o.Replicated != nil {
		unstored, format, term = replicatedUnstored, o.Replicated.Format, o.Replicated.Term
	}
	return machine.Options{
		MaxUnstored: unstored, Format: format,
		Persist: o.Durability != None, Await: o.Durability == Sync,
		AwaitLeases: o.Replicated != nil && o.Replicated.CommitLeases, DefaultLease: o.DefaultLease,
		PoisonAfter: max(o.PoisonAfter, 0), CacheBytes: o.CacheBytes, Wakeup: o.Wakeup.machine(),
		Random: rand.New(rand.NewPCG(seed, seed)), StartedAt: now, LinkStep: o.LinkStep,
		Resumes: o.Resumes, Term: term,
	}
}
