package core

// Totals counts what happened since the store was created (or since ResetCounters).
type Totals struct {
	Submitted uint64 // admissions
	Leased    uint64 // hand-outs
	Done      uint64 // successful ends
	Failed    uint64 // explicit failures, and expired leases that count as failures
	Dead      uint64 // moves to the dead set
	Expired   uint64 // unfinished jobs removed at their ExpiresAt or StartBefore
	Cancelled uint64
	Released  uint64 // leases given back without a finish
}

// Stats is a snapshot of the counters.
type Stats struct {
	StartedAt Instant
	Jobs      [len(States) + 1]int   // by State
	Totals    Totals                 // all protocols
	ByOrigin  [len(Protocols)]Totals // by protocol of the job
	ByWorker  [len(Protocols)]Totals // by protocol of the client that caused it (finishes, leases)
	Clients   [len(Protocols)]int    // open clients
	LeasedBy  [len(Protocols)]int    // jobs leased by workers of a protocol
	History   []Day                  // newest first, at most 180

	// Due counts, by State, jobs whose time came since the process started: scheduled and retrying jobs that became
	// ready, leases that expired.
	Due [len(States) + 1]uint64

	Reports uint64 // of progress and to logs, since the process started

	Queues   int
	Batches  int
	Stopped  bool // the store failed: reads only
	DiskFull bool // new jobs are refused
	DiskSlow bool // a commit is being written that has taken more than a second
	Draining bool // no job is handed out
	Refusing bool // new jobs are refused by Drain
}

// Day counts finishes of one UTC day.
type Day struct {
	Date      string // 2006-01-02
	Processed uint64
	Failed    uint64
}

// Latency is a histogram of how long something took.
type Latency struct {
	Count   uint64
	Seconds float64            // sum of all
	UpTo    map[float64]uint64 // number of values up to so many seconds
}
