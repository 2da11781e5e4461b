// Package qless serves clients of Qless. To them, the broker looks like a Redis server that runs the Qless script.
//
// # Calls
//
// Qless is one Lua script. Clients call its operations with EVALSHA: no keys, the name of the operation, the caller's
// now in seconds, and arguments. SCRIPT LOAD and EVAL recognize the script (script.go). The operations are implemented
// in Go, with the replies, messages and errors of the script. Other scripts and commands are refused. Files are named
// after the operations: put.go, pop.go, complete.go and so on. commands.go has the table. There is no wire.go, because
// frontends/shared/resp reads the commands, and no mapping.go: broker.go maps jobs, together with the locks of the
// script.
//
// # State
//
// All data that clients see is in memory (model.go), in the same sorted sets as in the script. Jobs that no call uses
// are packed (jobtable.go). A call is one transaction (tx.go). It changes the model, records how to undo the changes,
// and ends in one commit (commit.go) that holds
//
//   - operations on the broker's jobs: each job that is not complete or failed is a job of the broker, which workers of other
//     protocols can lease (broker.go);
//   - documents with all other data (documents.go): history, locks, tags, statistics, definitions of recurring jobs.
//
// The reply and the published messages wait for that commit. After a restart, Start reads the documents and compares
// them with the broker's jobs (attach.go).
//
// Recurring jobs and statistics are documents of this package. They are not schedules and histograms of the core,
// because both follow the broker's clock. A schedule of the core creates jobs at its due time, with ids that the core
// chooses. A recurring job of Qless creates jobs inside pop and peek, according to the caller's now, which may differ
// from the clock by hours. It names them PREFIX-1, PREFIX-2 and so on, and creates at most as many as the call asks
// for. The core's histograms use powers of two and its own clock. The histograms of the script count the times between
// two nows of callers, in 148 buckets with mean and variance, by the day of the caller. With the core's versions, both
// would be wrong for every caller whose clock differs, and for every replay of old calls.
//
//	EVALSHA ─ session ─ call ─ sync ──▶ command ─ tx ─▶ plan ─ Atomic{jobs, documents} ─▶ messages, reply ─ commit ─▶ socket
//	                             ▲
//	                             └─ events of jobs that clients of other protocols have changed (sync.go, adopt.go)
//
// In a cluster the leader serves the clients of Qless, also those of nodes that follow. A call may read and change any
// part of the model, and its reply depends on all calls before it: a session at another node would send the whole call
// to the leader anyway, and could answer none of it.
//
// # Time
//
// Every call has its own now, and the broker's clock does not matter. Other protocols do not send a now. For their
// workers, locks end and scheduled jobs become due by the wall clock or the last now, whichever is later (sweep.go).
//
// # Words
//
//	Qless      broker
//	klass      type
//	put        submit, move
//	pop        lease of a chosen job
//	complete   complete; with a next queue: move
//	fail       fail; the job is dead
//	retry      move
//	timeout    release
//	cancel     cancel
//	depends    blocked
//	lock       lease
package qless
