package machine

import (
	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/timer"
)

// entry is what the machine needs to decide about a job. It has no pointers, so that the garbage collector does not scan it.
type entry struct {
	seq       uint64
	id        digest // of the client's own id; zero if it was minted
	unique    digest // of queue-independent UniqueKey; zero if there is none or it is free
	createdAt core.Instant
	readyAt   core.Instant // position in the queue; due time; time of death or completion
	expiresAt core.Instant // as submitted, or the end of retention
	leasedAt  core.Instant // start of the lease; Retrying: time of the failure; Ready: time of its return, if any

	priorityLow uint32 // see entry.priority
	queue       uint32
	leaseFor    uint32 // milliseconds, as submitted
	granted     uint32 // milliseconds, of the present lease or its last extension
	attempts    uint32
	maxAttempts uint32
	fails       uint32
	maxFails    uint32
	epoch       uint32
	stateTimer  timer.ID // due, retry, or end of lease
	expiryTimer timer.ID
	holder      uint32 // client slot (HeldByConn) or worker name (HeldByWorker); Retrying and Dead: failure group
	heldAt      uint32 // index in its holder's list of jobs
	watchers    uint32 // head of the list
	uniqueNext  uint32 // next job with the same key in another queue
	bodyBytes   uint32 // of the stored body, or of the one to be stored
	kind        uint32 // number of its type; zero: its queue's name
	flags       flags

	state        core.State
	origin       core.Protocol
	backoff      core.Backoff
	exhausted    core.Exhausted
	words        words
	holderKind   core.Holder
	holderFrom   core.Protocol // protocol of the client that holds or held it
	stored       record.Parts
	lostLeases   uint8 // in a row; see poison.go
	priorityHigh int8  // see entry.priority
	deadHours    uint16
	entries      uint32 // of its timeline
}

// words are Job.Own and, beyond its bits, Job.LeaseEnd, whether the status names the queue, and whether there is a status.
type words uint8

const (
	endFails   words = words(core.JobFields+1) << iota // LeaseEndFail
	rehomed                                            // the job in the store may name another queue
	memoryOnly                                         // JobPolicy.Unstored: not stored, though it is not ephemeral
)

// unstored reports whether a job is in memory only.
func (e *entry) unstored() bool { return e.has(ephemeral) || e.words&memoryOnly != 0 }

// own reports whether the client has chosen one of these members itself.
func (e *entry) own(f core.PolicyFields) bool { return e.words&words(f) != 0 }

// flags are the booleans of an entry.
type flags uint32

const (
	ephemeral       flags = 1 << iota // never stored
	stored                            // the job is in the store or in a sealed batch
	dirty                             // in the list of changed jobs
	changed                           // its status differs from "as submitted"
	requeued                          // was leased before
	unlocked                          // its unique key was freed early
	broken                            // blocked, and a dependency is gone without being done
	scheduledOrder                    // Workq's order among equals
	idIsUUIDv4                        // so it needs no alias
	hasOptional                       // it has an optionalState
	hasTransient                      // it has a transient
	runOver                           // a WatchRun has passed its deadline while leased
	nonResident                       // its payload is not in memory
	failureStored                     // the store has its failure
	outcomeStored                     // the store has its outcome
	keepsOutcome                      // Job.Kept
	doneFailed                        // done, as failed
	payloadStored                     // the store has its payload
	inflight                          // its last change is in the batch in flight
	rewrite                           // the payload in the store is outdated
	newBody                           // likewise, and so is the body
	rerun                             // Leased: it runs again when this run ends; see Machine.rerun
	listed                            // in the lists of its state
	keptByQueue                       // Done: it stays for the retention of its queue
	held                              // it has a holder: Leased and not being detached
	traced                            // Job.Trace is set
	seqOrder                          // Job.SeqOrder
	tallyMoves                        // TallyMoves
	tallyFirstLease                   // TallyFirstLease
	arrived                           // restored as ready since its submission; see Machine.arrive
	untouched                         // restored, and neither leased nor changed since; see Machine.mayHaveBeenLeased
	stopping                          // Leased: its worker is asked to stop; see stop.go
)

// priority is the job's priority. Its 33 bits take two fields: one of 64 bits would make every entry larger.
func (e *entry) priority() int64 { return int64(e.priorityHigh)<<32 | int64(e.priorityLow) }

func (e *entry) setPriority(p int64) {
	e.priorityLow, e.priorityHigh = uint32(p), int8(p>>32) //nolint:gosec // both halves
}

// place is the job's position among ready jobs of its priority, before its number.
func (e *entry) place() core.Instant {
	if e.has(seqOrder) {
		return e.createdAt
	}
	return e.readyAt
}

func (e *entry) has(f flags) bool { return e.flags&f != 0 }
func (e *entry) set(f flags)      { e.flags |= f }
func (e *entry) clear(f flags)    { e.flags &^= f }

const (
	pageBits = 10
	pageSize = 1 << pageBits
)

// payloads are those of a page of entries, while any of them is in memory. They are not part of the page, so that a page of entries
// takes a whole number of pages of memory.
type payloads struct {
	of       *[pageSize]*core.Job
	resident int
}

// slab assigns handles, from 1.
type slab struct {
	pages    []*[pageSize]entry // of neighbouring handles
	payloads []payloads         // by page
	free     []uint32
	next     uint32
	live     int
	spare    *[pageSize]*core.Job // empty, so that a nearly empty broker does not allocate a page per job
}

func (s *slab) at(h uint32) *entry { return &s.pages[h>>pageBits][h&(pageSize-1)] }

// alloc returns a zeroed entry.
func (s *slab) alloc() (uint32, *entry) {
	s.live++
	if n := len(s.free); n > 0 {
		h := s.free[n-1]
		s.free = s.free[:n-1]
		return h, s.at(h)
	}
	s.next++
	if int(s.next>>pageBits) >= len(s.pages) {
		s.pages, s.payloads = append(s.pages, new([pageSize]entry)), append(s.payloads, payloads{})
	}
	return s.next, s.at(s.next)
}

// release zeroes an entry; its handle may be reused at once.
func (s *slab) release(h uint32) {
	s.live--
	*s.at(h) = entry{}
	s.free = append(s.free, h)
	if s.live == 0 && len(s.pages) > 8 { // a drained broker frees its memory
		*s = slab{}
	}
}

func (s *slab) payload(h uint32) *core.Job {
	p := s.payloads[h>>pageBits].of
	if p == nil {
		return nil
	}
	return p[h&(pageSize-1)]
}

func (s *slab) setPayload(h uint32, j *core.Job) {
	p := &s.payloads[h>>pageBits]
	if p.of == nil {
		if j == nil {
			return
		}
		if p.of, s.spare = s.spare, nil; p.of == nil {
			p.of = new([pageSize]*core.Job)
		}
	}
	slot := &p.of[h&(pageSize-1)]
	switch {
	case *slot == nil && j != nil:
		p.resident++
	case *slot != nil && j == nil:
		p.resident--
	}
	*slot = j
	if p.resident == 0 {
		p.of, s.spare = nil, p.of
	}
}
