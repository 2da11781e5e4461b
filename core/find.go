package core

import "time"

// Filter selects jobs: a job must match every field that is set. The zero Filter matches every job.
type Filter struct {
	States      []State
	Queues      []string // one of these
	QueuePrefix string
	// queues that match one of these patterns; nil: all. Holds what the client may see, so that counts respect it too
	Within       []string
	Types        []string
	Origins      []Protocol
	Worker       string   // leased to the worker with this id, or by a connection with this name
	ErrorClass   string   // type of the last failure
	Tags         []string // all of these
	FailureGroup string   // group of the last failure; retrying and dead jobs only
	Version      string   // JobInfo.Version; leased, retrying and dead jobs only
	Batch        uint64
	Parent       uint64
	// this job, or the jobs of this batch, and everything below: children, jobs that still wait for them, batches
	Workflow   uint64
	UniqueKeys []string // holds one of these unique keys

	// NoErrorClass, NoFailureGroup and NoVersion match jobs without an error class, a failure group or a version. They
	// cannot be combined with ErrorClass, FailureGroup and Version.
	NoErrorClass, NoFailureGroup, NoVersion bool

	Seqs []uint64 // one of these numbers, in ascending order

	HoldsKey bool // holds any unique key

	CancelRequested bool // leased, and its worker has been asked to stop

	IDPrefix string

	FailedBy string // the worker that has reported the last failure

	Created  Range // Job.CreatedAt
	Due      Range // of scheduled and retrying jobs: JobInfo.ReadyAt
	Died     Range // of dead jobs
	Finished Range // of kept jobs that are done

	MinPriority, MaxPriority *int64

	Text     string // in the id, the type, a tag, or the type or message of the last failure; ignores case
	BodyText string // in the body
	Anywhere string // as Text, or in the body
}

// NeedsRecords reports whether the filter has conditions that only the jobs' records can answer. The index then finds
// the candidates, and their records are read, up to a number of bytes per call.
func (f *Filter) NeedsRecords() bool {
	return f.ErrorClass != "" || f.NoErrorClass || f.IDPrefix != "" || f.FailedBy != "" || f.Text != "" || f.BodyText != "" ||
		f.Anywhere != ""
}

// OnlyStatesAndQueues reports whether the filter has no conditions except states and queues.
func (f *Filter) OnlyStatesAndQueues() bool {
	return f.FailureGroup == "" && !f.NoFailureGroup && f.OnlyGroup()
}

// OnlyGroup reports whether the filter has no conditions except a failure group, states and queues.
func (f *Filter) OnlyGroup() bool {
	return len(f.Types) == 0 && len(f.Origins) == 0 && f.Worker == "" && len(f.Tags) == 0 && f.Batch == 0 &&
		f.Parent == 0 && f.Workflow == 0 && f.Version == "" && !f.NoVersion &&
		len(f.UniqueKeys) == 0 && len(f.Seqs) == 0 && !f.HoldsKey && !f.CancelRequested &&
		f.Created == (Range{}) && f.Due == (Range{}) && f.Died == (Range{}) &&
		f.Finished == (Range{}) && f.MinPriority == nil && f.MaxPriority == nil && !f.NeedsRecords()
}

// OnlyTags reports whether the filter has no conditions except tags.
func (f *Filter) OnlyTags() bool {
	rest := *f
	rest.Tags = nil
	return rest.OnlyStatesAndQueues() && len(f.States) == 0 && len(f.Queues) == 0 && f.QueuePrefix == "" &&
		f.Within == nil
}

// Range is the span of time from From up to but not including To; zero is open.
type Range struct{ From, To Instant }

// Contains reports whether i is in the range.
func (r Range) Contains(i Instant) bool { return i >= r.From && (r.To == 0 || i < r.To) }

// Order is the order of a list of jobs. It also decides which states the list contains.
type Order uint8

// The orders. OrderCreated: all jobs, as they were submitted. OrderQueue: ready jobs, queue by queue, in the order in
// which they will be handed out. OrderDue: scheduled and retrying jobs, by the time they become ready. OrderLeased:
// leased jobs, by the start of the lease. OrderDied: dead jobs. OrderFinished: kept jobs that are done.
const (
	OrderCreated Order = iota
	OrderQueue
	OrderDue
	OrderLeased
	OrderDied
	OrderFinished
)

// States lists the states of the jobs that a list in this order contains.
func (o Order) States() []State {
	switch o {
	case OrderCreated:
		return States[:]
	case OrderQueue:
		return []State{Ready}
	case OrderDue:
		return []State{Scheduled, Retrying}
	case OrderLeased:
		return []State{Leased}
	case OrderDied:
		return []State{Dead}
	case OrderFinished:
		return []State{Done}
	}
	return nil
}

// Find lists jobs by page, without their bodies. Reply: Listed with Jobs, and NextCursor unless this is the last page;
// or Failed with ErrInvalid for a cursor of another order, or a filter that asks for states that the order does not
// have.
//
// A page holds Limit jobs unless it is the last page or Stopped is set. Stopped means that the call has reached its
// scan limit; the next call continues from NextCursor. Across the pages of a list, a job that does not change appears
// exactly once, whatever happens to other jobs. A job that leaves its place and returns in the meantime is not listed
// again, except in OrderQueue if its priority has changed.
//
// With WithCount, Count is the number of jobs that match if CountExact is set, otherwise a lower bound.
type Find struct {
	reading
	Tag       uint64
	Filter    Filter
	Order     Order
	Desc      bool   // in reverse order
	Cursor    string // NextCursor of the previous page
	Limit     int    // at most 1,000; zero: 100
	Brief     bool   // only what is in memory: Job, Failure and Outcome may be nil
	WithCount bool

	// WithFailures is a maximum number of groups. If it is not zero, the matching retrying and dead jobs are counted by
	// failure group and type, largest groups first. A filter with conditions other than states, queues, a failure
	// group, types, a version and a range of deaths that consists of whole clock hours gets no such counts.
	WithFailures int
}

// FailureCount is the number of jobs of one type in a failure group.
type FailureCount struct {
	Group, Type string
	Jobs        int

	// Those of the jobs that died in each clock hour (UTC) of DiedSpan, the oldest hour first; nil if none is dead.
	Died []int

	// The beginnings of the clock hours in which the first and the last of the dead jobs died; zero if none is dead.
	FirstHour, LastHour Instant

	// The same by the version of the last worker, at most MaxVersions, largest first; nil if no worker has named one.
	Versions []VersionCount
}

// VersionCount is the part of a FailureCount whose jobs were last leased by workers with one version.
type VersionCount struct {
	Version             string // empty: the workers have named none
	Jobs                int
	Died                []int
	FirstHour, LastHour Instant
}

// DiedHours is the number of hours in FailureCount.Died for a filter without a range of deaths, MaxDiedHours the
// maximum, and MaxVersions the maximum length of FailureCount.Versions.
const (
	DiedHours    = 24
	MaxDiedHours = 31 * 24
	MaxVersions  = 8
)

// DiedSpan returns the span of the clock hours in FailureCount.Died for a range of deaths: all of a range with both
// ends, otherwise up to now, or the last DiedHours. It is cut at the front to MaxDiedHours, and empty if the range ends
// before it begins.
func DiedSpan(r Range, now Instant) Range {
	const hour = Instant(time.Hour / time.Microsecond)
	span := Range{To: r.To}
	if r.To == 0 {
		span.To = now - now%hour + hour
	}
	switch {
	case r == (Range{}):
		span.From = span.To - DiedHours*hour
	default:
		span.From = min(max(r.From, span.To-MaxDiedHours*hour), span.To)
	}
	return span
}

// TagOf implements Op.
func (o *Find) TagOf() uint64 { return o.Tag }
