package core

// ListClients lists open clients of Protocol (Internal: of all protocols), in the order of their numbers, starting
// after After, which may have left. Reply: Answered with Clients; NextClient, the After of the next page, is not zero
// while there may be more, also if this page has fewer than Limit.
type ListClients struct {
	reading
	Tag      uint64
	Protocol Protocol
	After    ClientID
	Limit    int // at most 1,000; zero: 100
}

// ListWorkers lists the named workers that hold leases, on any connection, in no order, starting after Cursor. Reply:
// Answered with Workers; NextWorker, the Cursor of the next page, is not zero while there may be more, also if this
// page has fewer than Limit.
type ListWorkers struct {
	reading
	Tag    uint64
	Cursor uint64
	Limit  int // at most 1,000; zero: 100
}

// DisconnectClient closes a client's connection and so releases the leases held by the connection. Reply: Accepted, or
// Failed with ErrNotFound, or ErrInvalid for a client that has no connection.
type DisconnectClient struct {
	reading
	Tag    uint64
	Client ClientID
}

// NameClient sets the caller's name in lists of clients. No reply.
type NameClient struct {
	reading
	Name string
}

// ClientInfo describes an open client.
type ClientInfo struct {
	ID       ClientID
	Protocol Protocol
	Address  string // of the other end
	Identity string // subject of its TLS certificate
	Name     string // chosen by the client
	Worker   string // worker id of its last lease; the WorkerInfo of that name lists the jobs
	OpenedAt Instant
	Queues   []string  // that it is registered for or waits on, at most MaxQueuesShown
	Held     []HeldJob // by the connection
	Parked   bool      // a lease is waiting for a job
	Sleeping bool      // Sleep: waiting to be woken
}

// WorkerInfo describes a named worker that holds leases.
type WorkerInfo struct {
	Name string
	Held []HeldJob
}

// HeldJob is a job that a worker has leased.
type HeldJob struct {
	Seq        uint64
	Queue      string
	Type       string
	Protocol   Protocol // of the client that leased it
	Epoch      uint32
	LeasedAt   Instant
	LeaseUntil Instant // zero: until the connection closes
}

// MaxHeldShown is the maximum length of ClientInfo.Held and WorkerInfo.Held.
const MaxHeldShown = 100

// MaxQueuesShown is the maximum length of ClientInfo.Queues.
const MaxQueuesShown = 1_000

// WaitReason says why an unfinished job is not leased.
type WaitReason uint8

// The reasons. For a ready job, the first one that applies.
const (
	WaitNone     WaitReason = iota // the job is leased, done or dead
	WaitWorker                     // ready: no worker has requested it yet
	WaitPaused                     // ready: its queue is paused
	WaitDraining                   // ready: the broker hands out no jobs
	WaitLimit                      // ready: the limit of leases is reached
	WaitTime                       // scheduled or retrying: until ReadyAt
	WaitJobs                       // blocked: until the jobs in Waiting are closed
	WaitBatch                      // blocked: the callback of an incomplete batch
	WaitBroken                     // blocked: a dependency ended without being done; see JobInfo.Broken
	WaitOrder                      // ready: earlier jobs of its key have not ended; see JobInfo.Behind
)

func (r WaitReason) String() string {
	switch r {
	case WaitNone:
		return "none"
	case WaitWorker:
		return "worker"
	case WaitPaused:
		return "paused"
	case WaitDraining:
		return "draining"
	case WaitLimit:
		return "limit"
	case WaitTime:
		return "time"
	case WaitJobs:
		return "jobs"
	case WaitBatch:
		return "batch"
	case WaitBroken:
		return "broken"
	case WaitOrder:
		return "order"
	}
	return "unknown"
}

// The TagOf methods.

func (o *ListClients) TagOf() uint64      { return o.Tag }
func (o *ListWorkers) TagOf() uint64      { return o.Tag }
func (o *DisconnectClient) TagOf() uint64 { return o.Tag }
func (*NameClient) TagOf() uint64         { return 0 }
