package core

// EventKind is the kind of an event. The numbers are stored in timelines of jobs and never reused.
type EventKind uint8

// The kinds. A job that ends emits one of Done, Failed, Cancelled and Expired with Event.Over set. A job that fails but
// does not end emits Failed, then Retrying, Ready or Dead.
const (
	EventSubmitted    EventKind = iota + 1
	EventReady                  // ready for a worker
	EventLeased                 // handed out
	EventProgress               // its worker has reported
	EventDone                   // completed with success
	EventFailed                 // by a worker, or by an expired lease that counts as a failure
	EventRetrying               // waits for its next try
	EventDead                   // moved to the dead set
	EventCancelled              // removed by a client
	EventMoved                  // to another queue; Detail names the previous queue
	EventReleased               // a lease was given back, or ended with its connection
	EventLeaseExpired           // a lease expired
	EventChanged                // by a client; Detail says what
	EventExpired                // removed at its ExpiresAt or StartBefore
	EventQueuePaused
	EventQueueResumed
	EventQueueRemoved
	EventWorkerCame      // a connection has requested jobs for the first time
	EventWorkerGone      // a connection that had requested jobs closed
	_                    // was a note of a client, which no release wrote
	EventCancelRequested // a client asks the worker of a leased job to stop; Worker is that worker
	EventLogged          // lines were appended to the log of a leased job
)

// EventKinds lists all kinds.
var EventKinds = [...]EventKind{
	EventSubmitted, EventReady, EventLeased, EventProgress, EventDone, EventFailed, EventRetrying, EventDead,
	EventCancelled,
	EventMoved, EventReleased, EventLeaseExpired, EventChanged, EventExpired, EventQueuePaused, EventQueueResumed,
	EventQueueRemoved, EventWorkerCame, EventWorkerGone, EventCancelRequested, EventLogged,
}

var eventNames = [...]string{
	"none", "submitted", "ready", "leased", "progress", "done", "failed", "retrying", "dead", "cancelled", "moved",
	"released", "lease expired", "changed", "expired", "queue paused", "queue resumed", "queue removed", "worker came",
	"worker gone", "unknown", "cancel requested", "logged",
}

func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return "unknown"
}

// Subscribe requests events, filtered by kinds, queues, types, job and whether the job has a trace; an empty filter
// matches all. Reply: Accepted, or Failed with ErrInvalid (more than MaxSubscriptions of a client, an unknown kind);
// then an EventReply for each event, once its commit is on disk. While Buffer events wait to be fetched by Do, further
// ones are dropped and counted.
type Subscribe struct {
	reading
	Tag         uint64
	Kinds       []EventKind
	Queues      []string
	QueuePrefix string
	Types       []string
	Job         uint64
	Traced      bool // of jobs with a Job.Trace only
	Buffer      int  // zero: 1,000; at most 100,000
}

// MaxSubscriptions is the maximum number of subscriptions per client.
const MaxSubscriptions = 16

// Event is something that happened to a job, a queue or a worker.
type Event struct {
	Number   uint64 // counts all events while there were subscriptions
	At       Instant
	Kind     EventKind
	Queue    string
	Type     string
	ID       string // see Job.Identity; empty if only the store has it
	Seq      uint64
	Protocol Protocol // of the client that caused it; of a job's worker in Leased
	Worker   string   // id or name of the worker
	Detail   string
	Trace    string  // Job.Trace
	Since    Instant // Leased: since when the job waited; the first event after a lease: when that began; zero: neither
	Over     bool    // the job has come to its end
	Dropped  uint64  // events of this subscription that were lost just before
}

// TagOf implements Op.
func (o *Subscribe) TagOf() uint64 { return o.Tag }
