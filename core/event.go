package core

// EventKind says what happened. The numbers reach the disk in timelines of jobs and are never reused.
type EventKind uint8

// The kinds. A job that ends emits one of Done, Failed, Cancelled and Expired with Event.Over set; a failed one that does
// not end emits Failed, then Retrying, Ready or Dead.
const (
	EventSubmitted    EventKind = iota + 1
	EventReady                  // waits to be handed out
	EventLeased                 // handed out
	EventProgress               // its worker has reported
	EventDone                   // completed with success
	EventFailed                 // a worker said so, or its lease ran out where that counts as a failure
	EventRetrying               // waits for its next try
	EventDead                   // moved to the dead set
	EventCancelled              // removed by order
	EventMoved                  // to another queue; Detail names the one before
	EventReleased               // a lease ended without a word: given back, or its connection was lost
	EventLeaseExpired           // a lease ran out
	EventChanged                // by order; Detail says what
	EventExpired                // removed because its time was over
	EventQueuePaused
	EventQueueResumed
	EventQueueRemoved
	EventWorkerCame // a connection has asked for jobs for the first time
	EventWorkerGone // such a connection is closed
)

// EventKinds lists all of them.
var EventKinds = [...]EventKind{
	EventSubmitted, EventReady, EventLeased, EventProgress, EventDone, EventFailed, EventRetrying, EventDead, EventCancelled,
	EventMoved, EventReleased, EventLeaseExpired, EventChanged, EventExpired, EventQueuePaused, EventQueueResumed,
	EventQueueRemoved, EventWorkerCame, EventWorkerGone,
}

// eventNames are the kinds in words, by number.
var eventNames = [...]string{
	"none", "submitted", "ready", "leased", "progress", "done", "failed", "retrying", "dead", "cancelled", "moved",
	"released", "lease expired", "changed", "expired", "queue paused", "queue resumed", "queue removed", "worker came",
	"worker gone",
}

func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return "unknown"
}

// Subscribe asks for events: those of the kinds (none: all), in one of the queues, of jobs of one of the types, or of one
// job alone, as far as that is set. Reply: Accepted, or Failed with ErrInvalid (more than MaxSubscriptions of a client, an
// unknown kind); then EventReply for each event, which leaves when the commit that makes it true is on disk. While Buffer
// events wait to be fetched by Do, further ones are dropped and counted.
type Subscribe struct {
	reading
	Tag         uint64
	Kinds       []EventKind
	Queues      []string
	QueuePrefix string
	Types       []string
	Job         uint64
	Buffer      int // zero: 1,000; at most 100,000
}

// Unsubscribe ends the client's subscriptions that were made with this tag. No reply; events that wait are still given out.
type Unsubscribe struct {
	reading
	Tag uint64
}

// MaxSubscriptions is how many subscriptions a client may have.
const MaxSubscriptions = 16

// Event is something that happened to a job, a queue or a worker.
type Event struct {
	Number   uint64 // of all events of the process for which anybody was listening
	At       Instant
	Kind     EventKind
	Queue    string
	Type     string
	ID       string // the job's own id, or the minted one; empty if only the store has it
	Seq      uint64
	Protocol Protocol // of the client that caused it; of a job's worker in Leased
	Worker   string   // id or name of the worker
	Detail   string
	Over     bool   // the job has come to its end
	Dropped  uint64 // events of this subscription that were lost just before
}

// The TagOf methods.

func (o *Subscribe) TagOf() uint64 { return o.Tag }
func (*Unsubscribe) TagOf() uint64 { return 0 }
