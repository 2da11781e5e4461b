package core

// ListClients lists open clients of every protocol: those of Protocol (Internal: of any), in the order of the broker's
// own numbers, from the one behind After. Reply: Answered with Clients; NextClient is not zero while there are more.
type ListClients struct {
	reading
	Tag      uint64
	Protocol Protocol
	After    ClientID
	Limit    int // at most 1,000; zero: 100
}

// ListWorkers lists the workers that hold leases under a name of their own, whatever connection they use, in byte order
// of their names from the one behind After. Reply: Answered with Workers.
type ListWorkers struct {
	reading
	Tag   uint64
	After string
	Limit int // at most 1,000; zero: 100
}

// DisconnectClient closes a client's connection, which releases the leases that it guards. Reply: Accepted, or Failed with
// ErrNotFound, or ErrInvalid for a client that has no connection.
type DisconnectClient struct {
	reading
	Tag    uint64
	Client ClientID
}

// NameClient sets the caller's own name in lists of clients. No reply.
type NameClient struct {
	reading
	Name string
}

// ClientInfo is what is known of one open client.
type ClientInfo struct {
	ID       ClientID
	Protocol Protocol
	Address  string // of the other end
	Identity string // subject of its TLS certificate
	Name     string // its own word for itself
	Worker   string // id under which it leased last; its jobs are with the worker of that name
	OpenedAt Instant
	Queues   []string  // it can work for, or waits at
	Held     []HeldJob // by the connection itself
	Parked   bool      // a lease of it waits for a job
	Sleeping bool      // it waits to be woken
}

// WorkerInfo is what is known of a worker that holds leases under a name.
type WorkerInfo struct {
	Name string
	Held []HeldJob
}

// HeldJob is a job in a worker's hands.
type HeldJob struct {
	Seq        uint64
	Queue      string
	Type       string
	Protocol   Protocol // of the client that leased it
	Epoch      uint32
	LeasedAt   Instant
	LeaseUntil Instant // zero: as long as the connection lasts
}

// MaxHeldShown is how many jobs ClientInfo.Held and WorkerInfo.Held hold at most.
const MaxHeldShown = 100

// WaitReason says why a job that is not finished is not being worked on.
type WaitReason uint8

// The reasons. For a ready job the first that holds is given.
const (
	WaitNone     WaitReason = iota // it is leased, done or dead
	WaitWorker                     // ready: no worker has asked for it yet
	WaitPaused                     // ready: its queue is paused
	WaitDraining                   // ready: the broker hands out nothing
	WaitLimit                      // ready: as many jobs of the queue are leased as may be
	WaitTime                       // scheduled or retrying: until ReadyAt
	WaitJobs                       // blocked: until the jobs in Waiting are closed
	WaitBatch                      // blocked: the callback of a batch that is not so far
	WaitBroken                     // blocked by a job that is gone without being done; see JobInfo.Broken
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
	}
	return "unknown"
}

// The TagOf methods.

func (o *ListClients) TagOf() uint64      { return o.Tag }
func (o *ListWorkers) TagOf() uint64      { return o.Tag }
func (o *DisconnectClient) TagOf() uint64 { return o.Tag }
func (*NameClient) TagOf() uint64         { return 0 }
