// Package engine makes the core real: one lock around the machine, a clock, timers, and the committer that makes
// decisions durable.
//
//	session ── Do ──▶ lock ▸ machine.Apply ▸ take replies ▸ unlock ──▶ wake others, read what is not in memory
//	                              │ changes gather in the open batch
//	committer ── lock ▸ Seal ▸ unlock ──▶ store.Commit (one sync) ──▶ Committed, wake those who hold replies back
//
// While one batch is being synced the next one fills: the number of operations that share a sync grows with the load.
// A job that is submitted, leased and finished before its batch is sealed is never written at all.
//
// The lock is held for decisions only. The bodies of leased jobs that are not in memory are read by a few readers
// (readers.go) for the sessions of event loops, which must not wait for the disk; everything else that is not in memory
// is read by the goroutine that asked, after the lock is released.
//
// A start builds the machine from the store with an index (index.go). On a node of a cluster that follows, a Standby keeps
// such an index up to date, and the engine starts with it when that node leads.
package engine
