package table

import (
	"broker/core"
	"broker/core/internal/queue"
	"broker/core/internal/record"
	"broker/core/internal/timer"
)

// Options are the tunables of a table.
type Options struct {
	Persist    bool // changes are recorded; otherwise memory only
	Await      bool // replies wait for the commit of their change
	CacheBytes int  // payloads kept in memory, in addition to payloads that are not on disk yet
}

// Table holds the jobs, their indexes, and the open batch. Not safe for concurrent use.
type Table struct {
	slab

	Now    core.Instant
	Timers timer.Heap

	// Touched is how many jobs the current operation has looked at one after another, and Linked how many links
	// between jobs it has made or cut. What takes logarithmic or constant time is not counted.
	Touched, Linked int

	opts Options

	StoreLeaseEnds bool // the format of the open batch has record.Status.LeaseUntil
	StoreVersions  bool // the format of the open batch has record.Status.Version

	bySeq      seqIndex
	byID       map[Digest]uint32
	byUnique   map[Digest]uint32
	optionals  map[uint32]*Optional
	transients map[uint32]*Transient
	firstFails map[uint32]core.Instant // when jobs failed first; see FirstFail
	traces     map[uint32]string       // Job.Trace of the jobs that have one
	tallies    map[uint32]core.Tally   // of the jobs with Tallies, from the first event on
	stops      map[uint64]uint32       // when workers were asked to stop jobs, by number; see stop.go
	windows    windows
	peaks      mapPeaks

	ByState  StateLists
	Groups   groupIndex
	Tags     tagIndex
	Types    NameTable // of jobs, if different from the queue's name
	Workers  NameTable // names of workers that hold leases
	Versions versionIndex
	leases   [][]uint32 // held jobs, by number of the worker
	InState  [len(core.States) + 1]int
	Class    [3]int // ready jobs of all queues by class

	Before queue.Before // the order of a queue
	sooner queue.Before // the order of the list of a state
	// LastPlace is the latest position (Entry.Place) of a job that became ready or has SeqOrder. A job that becomes
	// ready gets FirstPlace or a later position, so that it does not overtake older jobs if the clock was set back.
	LastPlace, FirstPlace core.Instant

	queues    []*Queue // by number, from 1
	freeQ     []uint32
	names     map[string]uint32
	lastNamed uint32 // queue that was found last; see QueueNumber
	inOrder   queueNames
	byName    queue.Before

	NextSeq  uint64
	reserved uint64 // no Seq from here on may be assigned before a new reservation is sealed

	Open    core.Commit // number of the open batch
	Durable core.Commit // number of the newest batch that is durable
	// The commits of the last removal of a job, and of the last change of a meta entry.
	lastRemoval, lastMeta core.Commit

	changed       []uint32 // handles with the Dirty flag; a handle may have been reused since
	removed       []record.Change
	meta          map[string][]byte
	metaLog       []core.MetaEntry // of the open batch
	documents     []core.MetaEntry // of the open batch
	documentAt    map[string]int   // positions, by name
	cached        int              // bytes of payloads in memory
	Collected     int              // bytes of chunks kept for results
	OpenBytes     int              // bytes admitted to the open batch
	inflightBytes int              // bytes admitted to the batch in flight
}

// New makes an empty table.
func New(o Options) *Table {
	t := &Table{opts: o}
	t.bySeq = seqIndex{pages: map[uint64]*seqPage{}}
	t.byID, t.byUnique = map[Digest]uint32{}, map[Digest]uint32{}
	t.optionals, t.transients = map[uint32]*Optional{}, map[uint32]*Transient{}
	t.firstFails, t.traces, t.tallies = map[uint32]core.Instant{}, map[uint32]string{}, map[uint32]core.Tally{}
	t.stops = map[uint64]uint32{}
	t.NextSeq, t.Open = 1, 1
	t.queues, t.names = make([]*Queue, 1), map[string]uint32{}
	t.meta, t.documentAt = map[string][]byte{}, map[string]int{}
	t.windows, t.Tags = newWindows(), newTagIndex()
	// Priority, then position, then number.
	t.Before = func(a, b uint32) bool {
		x, y := t.At(a), t.At(b)
		if p, q := x.Priority(), y.Priority(); p != q {
			return p > q
		}
		if s, u := x.Has(ScheduledOrder), y.Has(ScheduledOrder); s != u {
			return u // plain jobs before scheduled ones
		}
		if s, u := x.Place(), y.Place(); s != u {
			return s < u
		}
		return x.Seq < y.Seq
	}
	// The time that determines the position in the state's list, then number.
	t.sooner = func(a, b uint32) bool {
		x, y := t.At(a), t.At(b)
		if s, u := x.ListedAt(), y.ListedAt(); s != u {
			return s < u
		}
		return x.Seq < y.Seq
	}
	t.byName = t.nameBefore
	t.Workers, t.Types, t.Groups.Names = newNameTable(), newNameTable(), newNameTable()
	t.Versions = versionIndex{Names: newNameTable(), of: map[uint32]uint32{}}
	t.Groups.Counts, t.Groups.Deaths = map[FailureKey]int{}, map[FailureKey]*Deaths{}
	return t
}

// SetOptions replaces the options.
func (t *Table) SetOptions(o Options) { t.opts = o }
