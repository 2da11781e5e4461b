// Package machine makes the decisions of the broker. It applies operations of clients to the jobs of a table, and produces replies and
// records to store. It has no goroutine, lock, clock, disk or log: time and random numbers are arguments, so that the same operations
// always produce the same state.
//
// # Durability
//
// A decision marks the job as changed. Seal turns all changes since the last Seal into one record.CommitBatch in which each
// job occurs once, in its last state: a job that came and went in between costs nothing.
//
// # Files
//
// machine.go has Apply; dispatch.go lists the operations; submit.go, lease.go, finish.go, cancel.go, expire.go and inspect.go implement
// most of them; depend.go and callback.go dependencies and batches; replay.go recovery; check.go verifies the invariants.
package machine
