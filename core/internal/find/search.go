package find

import (
	"slices"
	"strings"

	"broker/core"
	"broker/core/internal/table"
)

// Search is a Find with resolved names.
type Search struct {
	table  *table.Table
	host   Host
	effort Effort
	f      *core.Filter
	order  core.Order
	desc   bool
	start  *place       // end of the previous page; nil: none
	since  core.Instant // start time of the list
	states stateSet
	plain  bool     // the filter names only states and queues
	never  bool     // nothing can match
	queues []uint32 // in order of names; nil: all

	inQueues map[uint32]bool // the same as a set, if there are many
	kinds    map[uint32]bool // types that have a number
	named    map[uint32]bool // queues whose name is one of the types
	unique   []table.Digest  // of the unique keys
	group    uint32
	version  uint32
	tags     []uint32 // the rarest first
	worker   uint32

	climbs    *Climbs
	climb     *climb // of this list; nil: not needed so far
	spent     int    // of effort.Look, by the current page or count
	undecided bool   // the effort was spent before it was known whether the current job matches
}

// Host is what a search needs from the machine.
type Host interface {
	ConnName(slot uint32) string
	IsConnName(name string) bool                        // of any connection
	BatchParent(number uint64) (parent uint64, is bool) // is is false if there is no batch with this number
}

// Effort limits the cost of one Find.
type Effort struct {
	Look   int // jobs to examine for a page or a count; a climb counts as climbCost jobs
	Gather int // jobs to sort for an order without an index
}

// UsualEffort allows a few milliseconds at most.
var UsualEffort = Effort{Look: 20_000, Gather: 4000}

// New resolves the names of a Find.
func New(t *table.Table, host Host, limits Effort, climbs *Climbs, op *core.Find) (*Search, error) {
	f := &op.Filter
	s := &Search{
		table: t, host: host, effort: limits, f: f, order: op.Order, desc: op.Desc, since: t.Now,
		states: setOf(op.Order.States()), climbs: climbs,
	}
	if s.states == 0 {
		return nil, core.ErrInvalid
	}
	if len(f.States) > 0 {
		asked := setOf(f.States)
		if asked&^s.states != 0 {
			return nil, core.ErrInvalid
		}
		s.states = asked
	}
	if err := s.resume(op.Cursor); err != nil {
		return nil, err
	}
	if op.Cursor == "" && f.Workflow != 0 {
		climbs.drop(climbs.find(f.Workflow, s.since)) // another list that began at the same time
	}
	s.plain = f.OnlyStatesAndQueues()
	s.resolveQueues()
	s.resolveNames()
	s.impliedStates()
	if s.start == nil {
		s.start = s.rangeStart()
	}
	return s, nil
}

// resolveQueues finds the queues that the filter names.
func (s *Search) resolveQueues() {
	f := s.f
	switch {
	case len(f.Queues) > 0:
		s.queues = []uint32{}
		for _, name := range f.Queues {
			if n := s.table.QueueNumber(name); n != 0 && strings.HasPrefix(name, f.QueuePrefix) && isWithin(f, name) {
				s.queues = append(s.queues, n)
			}
		}
		s.sortQueues()
	case f.Within != nil:
		s.queues = []uint32{}
		for _, pattern := range f.Within {
			prefix, _, _ := strings.Cut(pattern, "*")
			if len(prefix) < len(f.QueuePrefix) {
				prefix = f.QueuePrefix
			}
			for _, n := range s.table.QueuesWith(prefix) {
				if name := s.table.QueueAt(n).Name; strings.HasPrefix(name, f.QueuePrefix) &&
					core.MatchQueue(pattern, name) {
					s.queues = append(s.queues, n)
				}
			}
		}
		s.sortQueues()
	case f.QueuePrefix != "":
		s.queues = s.table.QueuesWith(f.QueuePrefix)
	default:
		return
	}
	s.never = s.never || len(s.queues) == 0
	if len(s.queues) > 8 {
		s.inQueues = make(map[uint32]bool, len(s.queues))
		for _, n := range s.queues {
			s.inQueues[n] = true
		}
	}
}

// sortQueues sorts the queues by name and removes duplicates.
func (s *Search) sortQueues() {
	slices.SortFunc(s.queues,
		func(a, b uint32) int { return strings.Compare(s.table.QueueAt(a).Name, s.table.QueueAt(b).Name) })
	s.queues = slices.Compact(s.queues)
}

// isWithin reports whether a filter lets the client see a queue.
func isWithin(f *core.Filter, name string) bool {
	return f.Within == nil ||
		slices.ContainsFunc(f.Within, func(pattern string) bool { return core.MatchQueue(pattern, name) })
}

// resolveNames finds the numbers of types, of the failure group and of the worker, and the digest of the unique key.
func (s *Search) resolveNames() {
	f := s.f
	if len(f.Types) > 0 {
		s.kinds, s.named = map[uint32]bool{}, map[uint32]bool{}
		for _, name := range f.Types {
			if n := s.table.Types.NumberOf(name); n != 0 {
				s.kinds[n] = true
			}
			if n := s.table.QueueNumber(name); n != 0 {
				s.named[n] = true
			}
		}
		s.never = s.never || len(s.kinds)+len(s.named) == 0
	}
	if f.FailureGroup != "" {
		s.group = s.table.Groups.Names.NumberOf(f.FailureGroup)
		s.never = s.never || s.group == 0
	}
	if f.Version != "" {
		s.version = s.table.Versions.Names.NumberOf(f.Version)
		s.never = s.never || s.version == 0
	}
	s.resolveTags()
	for _, key := range f.UniqueKeys {
		s.unique = append(s.unique, table.DigestOf(key))
	}
	s.never = s.never || f.HoldsKey && s.table.LockCount() == 0 || f.CancelRequested && s.table.StopCount() == 0
	if f.Worker != "" {
		s.worker = s.table.Workers.NumberOf(f.Worker)
	}
}

// resolveTags finds the numbers of the tags, the rarest first.
func (s *Search) resolveTags() {
	x := &s.table.Tags
	for _, name := range s.f.Tags {
		if n := x.Names.NumberOf(name); n != 0 {
			s.tags = append(s.tags, n)
		} else {
			s.never = true
		}
	}
	slices.SortStableFunc(s.tags, func(a, b uint32) int { return x.Jobs[a].Len() - x.Jobs[b].Len() })
}

// impliedStates restricts the states to those that the other conditions allow.
func (s *Search) impliedStates() {
	f := s.f
	narrow := func(when bool, states ...core.State) {
		if when {
			s.states &= setOf(states)
		}
	}
	narrow(f.Worker != "" || f.CancelRequested, core.Leased)
	narrow(f.FailureGroup != "" || f.NoFailureGroup, core.Retrying, core.Dead)
	narrow(f.Version != "" || f.NoVersion, core.Leased, core.Retrying, core.Dead)
	narrow(f.Due != (core.Range{}), core.Scheduled, core.Retrying)
	narrow(f.Died != (core.Range{}), core.Dead)
	narrow(f.Finished != (core.Range{}), core.Done)
	narrow(f.HoldsKey, core.Scheduled, core.Blocked, core.Ready, core.Leased, core.Retrying)
	s.never = s.never || s.states == 0
}

// orderRange returns the filter's range of the time that defines the order.
func (s *Search) orderRange() core.Range {
	switch s.order {
	case core.OrderDue:
		return s.f.Due
	case core.OrderDied:
		return s.f.Died
	case core.OrderFinished:
		return s.f.Finished
	case core.OrderCreated, core.OrderQueue, core.OrderLeased:
	}
	return core.Range{}
}

// rangeStart is the position before the first job of orderRange; nil: the beginning.
func (s *Search) rangeStart() *place {
	r := s.orderRange()
	switch {
	case s.desc && r.To != 0:
		return &place{at: r.To}
	case !s.desc && r.From != 0:
		return &place{at: r.From}
	}
	return nil
}

// isPast reports whether a job comes after orderRange.
func (s *Search) isPast(h uint32) bool {
	r := s.orderRange()
	if r == (core.Range{}) {
		return false
	}
	at := s.table.At(h).ListedAt()
	return s.desc && at < r.From || !s.desc && r.To != 0 && at >= r.To
}

// Matches reports whether a job matches, as far as the index can tell; false if the search is undecided.
func (s *Search) Matches(h uint32) bool {
	e, f := s.table.At(h), s.f
	if s.never || !s.states.has(e.State) || !s.hasQueue(e.Queue) || s.cameLater(h) {
		return false
	}
	if s.plain {
		return true
	}
	return (len(f.Origins) == 0 || slices.Contains(f.Origins, e.Origin)) &&
		(f.MinPriority == nil || e.Priority() >= *f.MinPriority) &&
		(f.MaxPriority == nil || e.Priority() <= *f.MaxPriority) &&
		(s.kinds == nil || e.Kind != 0 && s.kinds[e.Kind] || e.Kind == 0 && s.named[e.Queue]) &&
		(s.group == 0 || e.Holder == s.group) && (!f.NoFailureGroup || e.Holder == 0) && s.isTagged(h) &&
		(len(s.unique) == 0 || slices.Contains(s.unique, e.Unique)) && s.isNamed(e.Seq) &&
		(!f.HoldsKey || e.Unique != (table.Digest{})) && (!f.CancelRequested || e.Has(table.Stopping)) &&
		s.hasVersion(h) &&
		(f.Worker == "" || s.heldBy(e)) && s.inRanges(e) && s.linked(h)
}

// isNamed reports whether a job has one of the numbers in the filter.
func (s *Search) isNamed(seq uint64) bool {
	if len(s.f.Seqs) == 0 {
		return true
	}
	_, found := slices.BinarySearch(s.f.Seqs, seq)
	return found
}

// hasVersion reports whether the version of a leased, retrying or dead job matches.
func (s *Search) hasVersion(h uint32) bool {
	if s.version == 0 && !s.f.NoVersion {
		return true
	}
	return s.table.VersionNumber(h) == s.version
}

func (s *Search) hasQueue(n uint32) bool {
	switch {
	case s.queues == nil:
		return true
	case s.inQueues != nil:
		return s.inQueues[n]
	}
	return slices.Contains(s.queues, n)
}

// cameLater reports whether a job reached its position in the order after the list was begun; the list may have shown
// it at another position. Times in the future are from when the clock was ahead.
func (s *Search) cameLater(h uint32) bool {
	if s.order == core.OrderCreated {
		return false // its position never changes
	}
	changed := s.table.ChangedAt(h, s.table.At(h))
	return changed > s.since && changed <= s.table.Now
}

// heldBy reports whether the worker in the filter holds the job.
func (s *Search) heldBy(e *table.Entry) bool {
	switch e.HolderKind {
	case core.HeldByWorker:
		return e.Holder == s.worker
	case core.HeldByConn:
		return s.host.ConnName(e.Holder) == s.f.Worker
	case core.HeldByNobody:
	}
	return false
}

func (s *Search) inRanges(e *table.Entry) bool {
	f := s.f
	if f.Created != (core.Range{}) && !f.Created.Contains(e.CreatedAt) {
		return false
	}
	switch e.State {
	case core.Scheduled, core.Retrying:
		return f.Due.Contains(e.ReadyAt)
	case core.Dead:
		return f.Died.Contains(e.ReadyAt)
	case core.Done:
		return f.Finished.Contains(e.ReadyAt)
	case core.Gone, core.Blocked, core.Ready, core.Leased:
	}
	return true
}

func (s *Search) isTagged(h uint32) bool {
	for _, tag := range s.tags {
		if !s.table.Tags.Has(h, tag) {
			return false
		}
	}
	return true
}

// linked reports whether a job belongs to the batch, the parent and the workflow in the filter.
func (s *Search) linked(h uint32) bool {
	if s.f.Workflow != 0 && !s.inWorkflow(s.table.At(h).Seq) {
		return false
	}
	if s.f.Batch == 0 && s.f.Parent == 0 {
		return true
	}
	x := s.table.Optional(h)
	return x != nil && (s.f.Batch == 0 || x.Batch == s.f.Batch) && (s.f.Parent == 0 || x.Parent == s.f.Parent)
}

// stateSet is a set of states.
type stateSet uint16

func setOf(states []core.State) (set stateSet) {
	for _, s := range states {
		set |= 1 << s
	}
	return set
}

func (set stateSet) has(s core.State) bool { return set&(1<<s) != 0 }
