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
// What clients see is in memory (model.go), in sorted sets as the script has them. A call is one transaction (tx.go): it
// changes the model, with notes of how to take that back, and ends in one commit (commit.go) that holds
//
//   - operations on the broker's jobs: each job that is not complete or failed is a job of the broker, which workers of
//     other protocols can take (broker.go);
//   - documents with the rest (documents.go): history, locks, tags, statistics, definitions of recurring jobs.
//
// The reply and the published messages wait for that commit. After a restart, Start reads the documents and compares them
// with the broker's jobs.
//
//	EVALSHA ─ session ─ call ─ learn ─▶ command ─ tx ─▶ plan ─ Atomic{jobs, documents} ─▶ messages, reply ─ commit ─▶ socket
//	                             ▲
//	                             └─ events of jobs that other protocols have changed (learn.go, adopt.go)
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
