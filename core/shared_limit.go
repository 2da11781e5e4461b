package core

// SharedLimit bounds the leases of several queues and types together: all jobs of its queues, and all jobs of its types in any queue.
// Each job counts once, with its Cost. Limits of single queues hold too.
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

// ListSharedLimits lists the shared limits in byte order of their names: the limit called Name with its current use, or all
// limits. Reply: Answered with SharedLimits.
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
