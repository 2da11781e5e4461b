package core

import (
	"fmt"
	"strings"
	"time"
)

// LimitScope says which jobs of a queue a limit applies to. On disk; never renumbered.
type LimitScope uint8

// ScopeQueue: all jobs of the queue together. ScopeType: jobs of one type. ScopeKey: jobs with one key; see Sharing.
const (
	ScopeQueue LimitScope = iota
	ScopeType
	ScopeKey
)

// QueueLimit bounds the leases of a queue, of each type in it, or of each key in it. Jobs beyond the limit wait; other
// jobs of the queue are leased before them.
type QueueLimit struct {
	Queue string
	Scope LimitScope

	// Name is the type or key that is limited, for ScopeType and ScopeKey. A limit without a Name applies separately to
	// each type or key that has no limit of its own.
	Name string

	Throttle // zero, with a Name: this type or key has no limit
	// set by the configuration file at each start, not stored; only operations with FromConfig change it
	FromConfig bool
}

// KeyKind says where the keys of jobs come from. On disk; never renumbered.
type KeyKind uint8

// KeyTag: the rest of the job's first tag that starts with JobKey.Tag and a colon. KeyUnique: the part of UniqueKey
// before the first colon, or all of it. A job without either has the empty key.
const (
	KeyNone KeyKind = iota
	KeyTag
	KeyUnique
)

// JobKey says where the keys of a queue's jobs come from.
type JobKey struct {
	Kind KeyKind
	Tag  string // KeyTag
}

// Sharing says how the keys of a queue share its workers.
type Sharing struct {
	Queue string
	Key   JobKey

	// Fair hands out jobs to the keys in turn, instead of by priority and age of all jobs; within a key priority and
	// age decide. A key gets as many turns as its weight, which is 1 unless Weights says otherwise.
	Fair    bool
	Weights map[string]uint32

	// Ordered hands out a job only when all earlier jobs (by Seq) of its key in the queue have ended or are handed out
	// together with it. Dead jobs count as ended. Jobs without a key are not ordered. It needs a KeyTag, and excludes
	// Fair.
	Ordered bool

	FromConfig bool // as in QueueLimit
}

// Check returns why a sharing is not valid, as an ErrInvalid.
func (s *Sharing) Check() error {
	wrong := func(what string) error { return fmt.Errorf("%w: %s", ErrInvalid, what) }
	switch {
	case s.Queue == "" || len(s.Queue) > MaxQueueName:
		return wrong("a sharing needs the name of a queue")
	case s.Key.Kind > KeyUnique || (s.Key.Kind == KeyTag) != (s.Key.Tag != "") || len(s.Key.Tag) > MaxTagBytes:
		return wrong("the key is a named tag, or comes from the unique key")
	case strings.Contains(s.Key.Tag, ":"):
		return wrong("the name of a tag ends before its first colon")
	case s.Key.Kind == KeyNone && (s.Fair || len(s.Weights) > 0), !s.Fair && len(s.Weights) > 0:
		return wrong("fairness needs a key, and weights need fairness")
	case s.Ordered && (s.Key.Kind != KeyTag || s.Fair):
		return wrong("order needs a key from a tag, and excludes fairness")
	case len(s.Weights) > MaxLimits:
		return wrong("there are too many weights")
	}
	for _, weight := range s.Weights {
		if weight == 0 || weight > MaxWeight {
			return wrong("a weight is between 1 and 1,000")
		}
	}
	return nil
}

// PutLimit sets a limit of a queue. Reply: Accepted, or Failed with ErrInvalid (the text says why), ErrFull (the queue
// has MaxLimits), or ErrConfigured (the limit is the configuration's, and FromConfig is not set). With KeyUnique, jobs
// that already waited before the first limit on keys was set, and whose payload is not in memory, have the empty key
// until the next start.
//
// If the queue has many jobs, they are sorted by type and key in the background, which takes about two seconds for a
// million jobs. Until that is done, the queue hands out no job, so that no limit is exceeded.
type PutLimit struct {
	changing
	Tag   uint64
	Limit QueueLimit
}

// RemoveLimit removes a limit of a queue. Reply: Accepted, or Failed with ErrNoLimit, or ErrConfigured.
type RemoveLimit struct {
	changing
	Tag        uint64
	Queue      string
	Scope      LimitScope
	Name       string
	FromConfig bool
}

// ShareQueue sets the sharing of a queue; a Sharing without a Key removes it. Reply: Accepted, or Failed with
// ErrInvalid or ErrConfigured, as PutLimit.
type ShareQueue struct {
	changing
	Tag     uint64
	Sharing Sharing
}

// ListLimits lists the limits and the sharing of queues in byte order of their names: of Queue, or of the first Limit
// (zero: all) queues after After. With a Queue, the use of each limit is listed too. Reply: Answered with Limits and
// Sharings.
type ListLimits struct {
	reading
	Tag   uint64
	Queue string
	After string
	Limit int
}

// LimitInfo is a limit and, if ListLimits names one queue, its current use.
type LimitInfo struct {
	QueueLimit
	// by name; with more than MaxLimitUses types or keys, those with the most slots taken, then with the most ready
	// jobs
	Uses []LimitUse
}

// LimitUse is the current use of the limit of one queue, type or key.
type LimitUse struct {
	Name   string    // type or key; empty for ScopeQueue
	Taken  uint32    // slots
	Ready  int       // jobs that could be leased if there were no limits
	NextAt Instant   // when the rate allows the next lease; zero: now
	Slots  []SlotUse // at most MaxSlotUses of the 20,000 oldest leases of all queues, the oldest first
}

// SlotUse is a leased job that counts against a limit.
type SlotUse struct {
	Seq      uint64
	Worker   string // id of the worker, or name of the connection
	Client   ClientID
	LeasedAt Instant
}

// Bounds of limits.
const (
	MaxLimits    = 1_000             // limits of one queue, and weights of its keys
	MaxRate      = 1_000_000         // leases a second
	MinRate      = 1.0 / (24 * 3600) // one a day
	MaxWeight    = 1_000
	MaxSlotUses  = 1_000
	MaxLimitUses = 1_000
)

// Throttle is what a limit allows. Zero is no limit.
type Throttle struct {
	Leased          uint32        // at the same time, by all workers together
	LeasedPerWorker uint32        // at the same time, for one worker id or connection
	SlotFor         time.Duration // a slot becomes free after this time even if its lease continues
	Rate            float64       // leases a second
	Burst           uint32        // leases at once after a pause, with a Rate; zero: 1
}

// Interval is the time between two leases at the throttle's rate, zero if it has none.
func (t *Throttle) Interval() time.Duration {
	if t.Rate == 0 {
		return 0
	}
	return time.Duration(float64(time.Second) / t.Rate)
}

// The TagOf methods.

func (o *PutLimit) TagOf() uint64    { return o.Tag }
func (o *RemoveLimit) TagOf() uint64 { return o.Tag }
func (o *ShareQueue) TagOf() uint64  { return o.Tag }
func (o *ListLimits) TagOf() uint64  { return o.Tag }

// SharedLimit bounds the leases of several queues and types together: all jobs of its queues, and all jobs of its types
// in any queue. Each job counts once, with its Cost. Limits of single queues hold too.
type SharedLimit struct {
	Name   string
	Queues []string
	Types  []string

	Throttle // Leased, Rate and Burst
}

// Bounds of shared limits.
const (
	MaxSharedLimits = 1_000
	MaxShared       = 1_000 // queues and types of one shared limit
)

// MaxCost is the largest Job.Cost.
const MaxCost = 1_000_000

// PutSharedLimit sets a shared limit. If a limit of the same name exists, its current use still counts. Reply:
// Accepted, or Failed with ErrInvalid (the text says why) or ErrFull (there are MaxSharedLimits). If the shared
// limits of queues change by this, their jobs are sorted as after PutLimit; until that is done, no job under a shared
// limit is handed out. Jobs of a type that no shared limit had before are looked for in steps: a queue with such jobs
// hands them out without the limit until it is found, and their leases count from then on.
type PutSharedLimit struct {
	changing
	Tag   uint64
	Limit SharedLimit
}

// RemoveSharedLimit removes a shared limit. Reply: Accepted, or Failed with ErrNoLimit.
type RemoveSharedLimit struct {
	changing
	Tag  uint64
	Name string
}

// ListSharedLimits lists the shared limits in byte order of their names: the limit called Name with its current use, or
// all limits. Reply: Answered with SharedLimits.
type ListSharedLimits struct {
	reading
	Tag  uint64
	Name string
}

// SharedLimitInfo is a shared limit and its current use.
type SharedLimitInfo struct {
	SharedLimit
	Use LimitUse // without a Name; Slots only where one limit is listed
}

// The TagOf methods.

func (o *PutSharedLimit) TagOf() uint64    { return o.Tag }
func (o *RemoveSharedLimit) TagOf() uint64 { return o.Tag }
func (o *ListSharedLimits) TagOf() uint64  { return o.Tag }
