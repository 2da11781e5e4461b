package core

// Filter says which jobs are meant: those for which all that is set holds. The zero Filter means every job.
type Filter struct {
	States       []State
	Queues       []string // one of these
	QueuePrefix  string
	Within       []string // queues that match one of these patterns; nil: all. What the client may see, so that counts obey it too
	Types        []string
	Origins      []Protocol
	Worker       string   // leased to the worker of this id, or by a connection of this name
	ErrorClass   string   // type of the last failure
	Tags         []string // all of these
	FailureGroup string   // group of the last failure; retrying and dead jobs only
	Batch        uint64
	Parent       uint64
	Workflow     uint64 // this job, or the jobs of this batch, and all below: children, jobs that still wait for them, batches
	UniqueKey    string // holds this unique key

	// NoErrorClass and NoFailureGroup choose the jobs without any; they exclude ErrorClass and FailureGroup.
	NoErrorClass, NoFailureGroup bool

	HoldsKey bool // holds any unique key

	CancelRequested bool // leased, and its worker is asked to stop

	IDPrefix string

	Created  Range // Job.CreatedAt
	Due      Range // of scheduled and retrying jobs: JobInfo.ReadyAt
	Died     Range // of dead jobs
	Finished Range // of kept jobs that are done

	MinPriority, MaxPriority *int64

	Text     string // in the id, the type, a tag, or the type or message of the last failure; regardless of case
	BodyText string // in the body
	Anywhere string // as Text, or in the body
}

// NeedsRecords reports whether the filter has conditions that only the jobs' records can answer: the index finds the
// candidates, and their records are read, up to a number of bytes a call.
func (f *Filter) NeedsRecords() bool {
	return f.ErrorClass != "" || f.NoErrorClass || f.IDPrefix != "" || f.Text != "" || f.BodyText != "" || f.Anywhere != ""
}

// OnlyStatesAndQueues reports whether the filter has no conditions but those.
func (f *Filter) OnlyStatesAndQueues() bool {
	return f.FailureGroup == "" && !f.NoFailureGroup && f.OnlyGroup()
}

// OnlyGroup reports whether the filter has no conditions but a failure group, states and queues.
func (f *Filter) OnlyGroup() bool {
	return len(f.Types) == 0 && len(f.Origins) == 0 && f.Worker == "" && len(f.Tags) == 0 && f.Batch == 0 &&
		f.Parent == 0 && f.Workflow == 0 && f.UniqueKey == "" && !f.HoldsKey && !f.CancelRequested && f.Created == (Range{}) && f.Due == (Range{}) && f.Died == (Range{}) &&
		f.Finished == (Range{}) && f.MinPriority == nil && f.MaxPriority == nil && !f.NeedsRecords()
}

// OnlyTags reports whether the filter has no conditions but tags.
func (f *Filter) OnlyTags() bool {
	rest := *f
	rest.Tags = nil
	return rest.OnlyStatesAndQueues() && len(f.States) == 0 && len(f.Queues) == 0 && f.QueuePrefix == "" && f.Within == nil
}

// Range is the span of time from From up to but not including To; zero is open.
type Range struct{ From, To Instant }

// Contains reports whether i is in the range.
func (r Range) Contains(i Instant) bool { return i >= r.From && (r.To == 0 || i < r.To) }

// Order is the order of a list of jobs, and which jobs have a place in it.
type Order uint8

// The orders. OrderCreated: all jobs, as they were submitted. OrderQueue: ready jobs, queue by queue as they will be handed
// out. OrderDue: scheduled and retrying jobs, by the time that they become ready. OrderLeased: leased jobs, by the start of
// the lease. OrderDied: dead jobs. OrderFinished: kept jobs that are done.
const (
	OrderCreated Order = iota
	OrderQueue
	OrderDue
	OrderLeased
	OrderDied
	OrderFinished
)

// States lists the states of the jobs that have a place in the order.
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

// Find lists jobs by page, without their bodies. Reply: Listed with Jobs, and NextCursor unless this is the last page; or
// Failed with ErrInvalid for a cursor of another order, or a filter that asks for states that the order does not have.
//
// A page holds Limit jobs unless it is the last one, or Stopped is set: the call has looked at as many jobs as it may, and
// the next one goes on with NextCursor. Over the pages of a list no job that stays as it is comes twice or is missed,
// whatever happens to others; one that leaves its place and comes back meanwhile is not listed again. (One whose priority is
// changed may be, in OrderQueue.)
//
// With WithCount, Count is how many jobs match: exactly if CountExact is set, else at least so many.
type Find struct {
	reading
	Tag       uint64
	Filter    Filter
	Order     Order
	Desc      bool   // from the other end
	Cursor    string // NextCursor of the page before
	Limit     int    // at most 1,000; zero: 100
	Brief     bool   // what memory has: Job, Failure and Outcome may be nil
	WithCount bool

	// WithFailures counts the retrying and dead jobs that match by failure group and type, largest first, at most that many
	// groups. Filters with conditions beyond states and queues have no such counts.
	WithFailures int
}

// FailureCount is the number of jobs of a failure group that have a type.
type FailureCount struct {
	Group, Type string
	Jobs        int
}

// ListNames lists the names by which jobs are found, with the number of jobs of each: in byte order from the one behind
// After, or the most frequent ones from Offset. Reply: Answered with Names.
type ListNames struct {
	reading
	Tag    uint64
	Of     NameKind
	Prefix string
	ByUse  bool // the most frequent first
	After  string
	Offset int
	Limit  int // at most 1,000; zero: 100
}

// NameKind is what a name belongs to.
type NameKind uint8

// The kinds. FailureGroups: of retrying and dead jobs. TypeNames: of jobs whose type is not the name of their queue.
const (
	FailureGroups NameKind = iota
	TypeNames
	TagNames
)

// NameCount is a name and the number of its jobs.
type NameCount struct {
	Name string
	Jobs int
}

// The TagOf methods.

func (o *Find) TagOf() uint64      { return o.Tag }
func (o *ListNames) TagOf() uint64 { return o.Tag }
