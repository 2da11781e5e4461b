// Package machine decides. It holds the index of all jobs, queues and clients, applies operations to it and says what
// has to be told to whom and made durable. It has no goroutine, lock, clock, disk or log: time and random numbers come
// as arguments, so that the same operations give the same state, whatever the machine runs on.
//
// # Memory
//
// A job is an entry of fixed size without a pointer, in pages, named by a 32-bit handle that is used again once the job
// is gone. What a client submitted (*core.Job) hangs beside it only until it is on disk and the cache is full; rare
// features (links, notes, unusual policies) live in side maps that only their users pay for.
//
// # Durability
//
// A decision marks the job as changed; Seal turns what has changed since the last Seal into one record.CommitBatch in which
// each job occurs once, in its last state: a job that came and went in between costs nothing.
//
// # Files
//
// machine.go is the index and Apply; submit.go, lease.go, finish.go, cancel.go, expire.go, inspect.go hold the verbs;
// links.go and group.go the workflow; replay.go takes back what was stored; check.go proves the invariants.
package machine
