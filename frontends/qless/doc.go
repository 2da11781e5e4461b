// Package qless serves clients of Qless, which take the broker for a Redis server with the script of Qless.
//
// # Calls
//
// Qless is one Lua script. Clients call its operations with EVALSHA: no keys, the name of the operation, the caller's now in
// seconds, and arguments. SCRIPT LOAD and EVAL of the script are recognized (script.go), and the operations are served
// natively, with the replies, messages and errors of the script. Other scripts and commands are refused. The operations
// are in files by their names: put.go, pop.go, complete.go and so on; commands.go has the table.
//
// # State
//
// What clients see is in memory (model.go), in sorted sets as the script has them; jobs are packed while no call looks at them
// (jobtable.go). A call is one transaction (tx.go): it changes the model, with notes of how to undo that, and ends in one
// commit (commit.go) that holds
//
//   - operations on the broker's jobs: each job that is not complete or failed is a job of the broker, which workers of
//     other protocols can take (broker.go);
//   - documents with the rest (documents.go): history, locks, tags, statistics, definitions of recurring jobs.
//
// The reply and the published messages wait for that commit. After a restart, Start reads the documents and compares them
// with the broker's jobs (attach.go).
//
// Recurring jobs and statistics are documents of this package and not schedules and histograms of the core. A schedule of the
// core runs by the clock of the broker, at any time, under ids of its own; a recurring job spawns inside pop and peek, by the
// now of the caller, which may be hours off the clock, as PREFIX-1, PREFIX-2 and so on, at most as many as the call asks for.
// The core's histograms have the times of its own clock, by powers of two; the script's have waits between two nows of callers,
// in 148 buckets with a mean and a variance, in the day of the caller. Kept in the core, both would be wrong for every caller
// whose clock differs, and for every replay of old calls.
//
//	EVALSHA ─ session ─ call ─ sync ──▶ command ─ tx ─▶ plan ─ Atomic{jobs, documents} ─▶ messages, reply ─ commit ─▶ socket
//	                             ▲
//	                             └─ events of jobs that other protocols have changed (sync.go, adopt.go)
//
// # Time
//
// Every call has its own now; nothing happens by the clock. For other protocols, which have no such now, locks end and
// scheduled jobs are due by the wall clock or the last now, whichever is later (sweep.go).
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
