package table

import (
	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/timer"
)

// Entry holds the data of a job that decisions need. It has no pointers, so the garbage collector does not scan it.
type Entry struct {
	Seq       uint64
	ID        Digest // of the client's own id; zero if the core created the id
	Unique    Digest // of queue-independent UniqueKey; zero if there is none or it is free
	CreatedAt core.Instant
	ReadyAt   core.Instant // position in the queue; due time; time of death or completion
	ExpiresAt core.Instant // as submitted, or the end of retention
	LeasedAt  core.Instant // start of the lease; Retrying: time of the failure; Ready: time of its return, if any

	priorityLow uint32 // see Entry.Priority
	Queue       uint32
	LeaseFor    uint32 // milliseconds, as submitted
	Granted     uint32 // milliseconds, of the current lease or its last extension
	Attempts    uint32
	MaxAttempts uint32
	Fails       uint32
	MaxFails    uint32
	Epoch       uint32
	StateTimer  timer.ID // due, retry, or end of lease
	ExpiryTimer timer.ID
	Holder      uint32 // client slot (HeldByConn) or worker name (HeldByWorker); Retrying and Dead: failure group
	HeldAt      uint32 // index in its holder's list of jobs
	Watchers    uint32 // head of the list
	UniqueNext  uint32 // next job with the same key in another queue
	BodyBytes   uint32 // of the stored body, or of the one to be stored
	Kind        uint32 // number of its type; zero: its queue's name
	flags       Flags

	State        core.State
	Origin       core.Protocol
	Backoff      core.Backoff
	Exhausted    core.Exhausted
	Extra        ExtraFlags
	HolderKind   core.Holder
	HolderFrom   core.Protocol // protocol of the client that holds or held it
	Stored       record.Parts
	LostLeases   uint8 // in a row; see machine/poison.go
	priorityHigh int8  // see Entry.Priority
	DeadHours    uint16
	Entries      uint32 // of its timeline
}

// ExtraFlags are flags that Flags has no room for: the members of Job.Own that matter after the submission,
// Job.LeaseEnd, whether the status names the queue, and whether the job is stored.
type ExtraFlags uint8

const (
	EndFails ExtraFlags = ExtraFlags(lastingFields+1) << iota // LeaseEndFail
	Rehomed                                                   // the job in the store may name another queue
	// JobPolicy.Unstored: not stored, though it is not ephemeral
	MemoryOnly
)

// lastingFields are the members of a policy that are read whenever they are needed.
const lastingFields = core.PolicyExpiresIn - 1

// Unstored reports whether a job is kept in memory only.
func (e *Entry) Unstored() bool { return e.Has(Ephemeral) || e.Extra&MemoryOnly != 0 }

// Own reports whether the client has chosen one of these members itself.
func (e *Entry) Own(f core.PolicyFields) bool { return e.Extra&ExtraFlags(f) != 0 }

// Flags are the booleans of an entry.
type Flags uint32

const (
	Ephemeral       Flags = 1 << iota // never stored
	Stored                            // the job is in the store or in a sealed batch
	Dirty                             // in the list of changed jobs
	Changed                           // its status differs from "as submitted"
	Requeued                          // was leased before
	Unlocked                          // its unique key was freed early
	Broken                            // blocked, and a dependency ended without being done
	ScheduledOrder                    // Workq's order among equals
	IDIsUUIDv4                        // so it needs no alias
	HasOptional                       // it has an Optional
	HasTransient                      // it has a Transient
	RunOver                           // a WatchRun has passed its deadline while leased
	NonResident                       // its payload is not in memory
	FailureStored                     // the store has its failure
	OutcomeStored                     // the store has its outcome
	KeepsOutcome                      // Job.Kept
	DoneFailed                        // done, as failed
	PayloadStored                     // the store has its payload
	inflight                          // its last change is in the batch in flight
	Rewrite                           // the payload in the store is outdated
	NewBody                           // the payload and the body in the store are outdated
	Rerun                             // Leased: it runs again when this run ends; see Machine.rerun
	Listed                            // in the lists of its state
	KeptByQueue                       // Done: kept for the retention of its queue
	Held                              // it has a holder: Leased and not being detached
	Traced                            // Job.Trace is set
	SeqOrder                          // Job.SeqOrder
	TallyMoves                        // TallyMoves
	TallyFirstLease                   // TallyFirstLease
	Arrived                           // restored as ready since its submission; see Machine.arrive
	Untouched                         // restored, and neither leased nor changed since; see Machine.mayHaveBeenLeased
	Stopping                          // Leased: its worker is asked to stop; see stop.go
)

// Priority is the job's priority. Its 33 bits use two fields, because a field of 64 bits would make every entry
// larger.
func (e *Entry) Priority() int64 { return int64(e.priorityHigh)<<32 | int64(e.priorityLow) }

func (e *Entry) setPriority(p int64) {
	e.priorityLow, e.priorityHigh = uint32(p), int8(p>>32)
}

// Place is the job's position among ready jobs of its priority, before its number.
func (e *Entry) Place() core.Instant {
	if e.Has(SeqOrder) {
		return e.CreatedAt
	}
	return e.ReadyAt
}

// Has reports whether any of the flags is set.
func (e *Entry) Has(f Flags) bool { return e.flags&f != 0 }

// Set sets flags.
func (e *Entry) Set(f Flags) { e.flags |= f }

// Clear clears flags.
func (e *Entry) Clear(f Flags) { e.flags &^= f }

// A page has the entries of PageSize neighbouring handles.
const (
	PageBits = 10
	PageSize = 1 << PageBits
)

// payloads are the payloads for a page of entries, while any of them is in memory. They are separate from the page, so
// that a page of entries takes a whole number of memory pages.
type payloads struct {
	of       *[PageSize]*core.Job
	resident int
}

// slab assigns handles, from 1.
type slab struct {
	Pages      []*[PageSize]Entry // of neighbouring handles
	payloads   []payloads         // by page
	Free       []uint32
	LastHandle uint32               // the highest that was assigned
	Live       int                  // handles in use
	spare      *[PageSize]*core.Job // empty, so that a nearly empty broker does not allocate a page per job
}

// At is the entry with a handle.
func (s *slab) At(h uint32) *Entry { return &s.Pages[h>>PageBits][h&(PageSize-1)] }

// alloc returns a zeroed entry.
func (s *slab) alloc() (uint32, *Entry) {
	s.Live++
	if n := len(s.Free); n > 0 {
		h := s.Free[n-1]
		s.Free = s.Free[:n-1]
		return h, s.At(h)
	}
	s.LastHandle++
	if int(s.LastHandle>>PageBits) >= len(s.Pages) {
		s.Pages, s.payloads = append(s.Pages, new([PageSize]Entry)), append(s.payloads, payloads{})
	}
	return s.LastHandle, s.At(s.LastHandle)
}

// release zeroes an entry; its handle may be reused at once.
func (s *slab) release(h uint32) {
	s.Live--
	*s.At(h) = Entry{}
	s.Free = append(s.Free, h)
	if s.Live == 0 && len(s.Pages) > 8 { // a drained broker frees its memory
		*s = slab{}
	}
}

// Payload is the payload of a job; nil: it is not in memory.
func (s *slab) Payload(h uint32) *core.Job {
	p := s.payloads[h>>PageBits].of
	if p == nil {
		return nil
	}
	return p[h&(PageSize-1)]
}

// takePayload removes the payload of a job from memory, if it is there.
func (s *slab) takePayload(h uint32) *core.Job {
	p := &s.payloads[h>>PageBits]
	if p.of == nil {
		return nil
	}
	slot := &p.of[h&(PageSize-1)]
	j := *slot
	if j == nil {
		return nil
	}
	*slot = nil
	if p.resident--; p.resident == 0 {
		p.of, s.spare = nil, p.of
	}
	return j
}

// putPayload keeps the payload of a job that has none in memory.
func (s *slab) putPayload(h uint32, j *core.Job) {
	p := &s.payloads[h>>PageBits]
	if p.of == nil {
		if p.of, s.spare = s.spare, nil; p.of == nil {
			p.of = new([PageSize]*core.Job)
		}
	}
	p.of[h&(PageSize-1)] = j
	p.resident++
}

// WaitsSince returns since when a ready job can be handed out.
func (e *Entry) WaitsSince(now core.Instant) core.Instant {
	return max(min(e.ReadyAt, now), e.CreatedAt, e.LeasedAt)
}
