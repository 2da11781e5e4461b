package core

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Limit bounds the leases of the jobs that it selects. Jobs beyond the limit wait; other jobs are leased before them.
// Each job counts with its Cost, in every limit that selects it.
type Limit struct {
	// Name identifies a shared limit: one for several queues and types together. A limit of one queue has no name: its
	// selector identifies it.
	Name string

	Selector
	Throttle // of a shared limit: Leased, Rate and Burst; zero, with Of: this type or key has no limit

	// set by the configuration file at each start, not stored; only operations with FromConfig change it
	FromConfig bool
}

// Selector selects the jobs of a limit. A shared limit selects all jobs of its queues, and all jobs of its types in any
// queue. A limit without a name selects all jobs of its only queue (ScopeQueue), or those of one type or key in it.
type Selector struct {
	Queues []string
	Types  []string // of a shared limit

	// Of is the type or key, for ScopeType and ScopeKey. Without it, the limit applies separately to each type or key
	// that has no limit of its own.
	Scope LimitScope
	Of    string
}

// LimitScope says which jobs of a queue a limit applies to. On disk; never renumbered.
type LimitScope uint8

// ScopeQueue: all jobs of the queue together. ScopeType: jobs of one type. ScopeKey: jobs with one key; see Sharing.
const (
	ScopeQueue LimitScope = iota
	ScopeType
	ScopeKey
)

// InQueue returns the selector of a limit of one queue.
func InQueue(queue string, scope LimitScope, of string) Selector {
	return Selector{Queues: []string{queue}, Scope: scope, Of: of}
}

// LimitID identifies a limit: by the Name of a shared limit, otherwise by queue, scope, and type or key.
type LimitID struct {
	Name  string
	Queue string
	Scope LimitScope
	Of    string
}

// ID identifies the limit, which must be valid.
func (l *Limit) ID() LimitID {
	if l.IsShared() {
		return LimitID{Name: l.Name}
	}
	return LimitID{Queue: l.Queues[0], Scope: l.Scope, Of: l.Of}
}

// IsShared reports whether the limit is one for several queues and types.
func (l *Limit) IsShared() bool { return l.Name != "" }

// Compare orders limits by name, queue, scope, and type or key.
func (id LimitID) Compare(to LimitID) int {
	return cmp.Or(cmp.Compare(id.Name, to.Name), cmp.Compare(id.Queue, to.Queue), cmp.Compare(id.Scope, to.Scope),
		cmp.Compare(id.Of, to.Of))
}

// Check returns why a limit is not valid, as an ErrInvalid.
func (l *Limit) Check() error {
	wrong := func(what string) error { return fmt.Errorf("%w: %s", ErrInvalid, what) }
	unusable := func(name string) bool { return name == "" || len(name) > MaxQueueName }
	names := len(l.Queues) + len(l.Types)
	if l.IsShared() {
		switch {
		case unusable(l.Name) || slices.ContainsFunc(l.Queues, unusable) || slices.ContainsFunc(l.Types, unusable):
			return wrong("a shared limit, its queues and its types need names; names are bounded")
		case names == 0 || names > MaxShared:
			return wrong("a shared limit has between 1 and 1,000 queues and types")
		case l.Scope != ScopeQueue || l.Of != "" || l.FromConfig:
			return wrong("a shared limit has no scope, and does not come from the configuration")
		case l.LeasedPerWorker != 0 || l.SlotFor != 0:
			return wrong("a shared limit has no limit for each worker and no time of slots")
		case l.Leased == 0 && l.Rate == 0:
			return wrong("it limits nothing")
		}
	} else {
		switch {
		case names != 1 || len(l.Queues) != 1 || unusable(l.Queues[0]) || len(l.Of) > MaxIDBytes:
			return wrong("a limit needs the name of a queue; names are bounded")
		case l.Scope > ScopeKey:
			return wrong("unknown scope")
		case l.Scope == ScopeQueue && l.Of != "":
			return wrong("a limit of the whole queue has no name")
		case l.Throttle == (Throttle{}) && l.Of == "":
			return wrong("it limits nothing")
		}
	}
	switch bad := l.Rate != 0 && !(l.Rate >= MinRate && l.Rate <= MaxRate) || l.Burst > 0 && l.Rate == 0; {
	case bad && l.IsShared():
		return wrong("a rate is between one a day and a million a second, and a burst needs a rate")
	case bad || l.SlotFor < 0:
		return wrong(
			"a rate is between one a day and a million a second, a burst needs a rate, and a time is not negative",
		)
	}
	return nil
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

	FromConfig bool // as in Limit
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

// PutLimit sets a limit; the current use of a limit that it replaces still counts. Reply: Accepted, or Failed with
// ErrInvalid (the text says why), ErrFull (the queue has MaxLimits, or there are MaxSharedLimits), or ErrConfigured
// (the limit is the configuration's, and FromConfig is not set). With KeyUnique, jobs that already waited before the
// first limit on keys was set, and whose payload is not in memory, have the empty key until the next start.
//
// If the queue has many jobs, they are sorted by type and key in the background, which takes about two seconds for a
// million jobs. Until that is done, the queue hands out no job, so that no limit is exceeded. For a shared limit whose
// queues or types have changed, no job under any shared limit is handed out until then. Jobs of a type that no shared
// limit had before are looked for in steps: a queue with such jobs hands them out without the limit until it is found,
// and their leases count from then on.
type PutLimit struct {
	changing
	Tag   uint64
	Limit Limit
}

// RemoveLimit removes a limit. Reply: Accepted, or Failed with ErrNoLimit, or ErrConfigured.
type RemoveLimit struct {
	changing
	Tag        uint64
	ID         LimitID
	FromConfig bool
}

// ShareQueue sets the sharing of a queue; a Sharing without a Key removes it. Reply: Accepted, or Failed with
// ErrInvalid or ErrConfigured, as PutLimit.
type ShareQueue struct {
	changing
	Tag     uint64
	Sharing Sharing
}

// ListLimits lists limits: the shared limit called Name, with its use; the limits of Queue, with their use; or all:
// first the shared ones in byte order of their names, with counts of their use, then the limits and the sharing of
// queues in byte order of their names, both after After, of at most Limit (zero: 1,000) shared limits and queues.
// Reply: Answered with Limits and Sharings; NextLimit, the After of the next page, is not zero while there may be more,
// also if this page has fewer than Limit.
type ListLimits struct {
	reading
	Tag   uint64
	Name  string
	Queue string
	After LimitID // the Name or the Queue counts
	Limit int

	// with Queue: the answer has Keys, if the keys take turns or have limits
	WithKeys bool
}

// KeyUse is what the jobs of one key of a queue do; see Sharing.
type KeyUse struct {
	Name      string        // the key; empty: of the jobs without one
	Ready     int           // in an ordered queue: the jobs that are next
	Leased    int           // not their costs
	OldestAge time.Duration // of the ready job that has waited longest
	// leases a second over the last minute, since the process started; zero for keys beyond the 10,000 busiest of all
	// queues
	Rate float64
}

// LimitInfo is a limit and, if ListLimits returns it, its current use.
type LimitInfo struct {
	Limit
	// by name; with more than MaxLimitUses types or keys, those with the most slots taken, then with the most ready
	// jobs; with more than 20,000, those of 20,000 of them; one of a shared limit, with Slots only if it was asked for
	// by name
	Uses []LimitUse
}

// LimitUse is the current use of a limit, or of its part for one type or key.
type LimitUse struct {
	Name   string    // type or key; empty for ScopeQueue and of a shared limit
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
	MaxLimits       = 1_000 // limits of one queue, and weights of its keys
	MaxSharedLimits = 1_000
	MaxShared       = 1_000             // queues and types of one shared limit
	MaxCost         = 1_000_000         // the largest Job.Cost
	MaxRate         = 1_000_000         // leases a second
	MinRate         = 1.0 / (24 * 3600) // one a day
	MaxWeight       = 1_000
	MaxSlotUses     = 1_000
	MaxLimitUses    = 1_000 // also of Answer.Keys
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
