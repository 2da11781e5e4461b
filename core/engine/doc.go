// Package engine makes the core real: one lock around the machine, a clock, timers, and the committer that makes
// decisions durable.
//
//	session ── Do ──▶ lock ▸ machine.Apply ▸ take replies ▸ unlock ──▶ wake others, read data not in memory
//	                              │ changes gather in the open batch
//	committer ── lock ▸ Seal ▸ unlock ──▶ Journal.Append (one sync) ──▶ Committed, wake the clients whose replies wait
//
// While one batch is being synced, the next one fills, so the number of operations that share a sync grows with the
// load. A job that is submitted, leased and finished before its batch is sealed is never written at all.
//
// The lock is held for decisions only. The bodies of leased jobs that are not in memory are read by a few reader
// goroutines (readers.go), because the sessions of event loops must not wait for the disk. Everything else that is not
// in memory is read by the calling goroutine, after the lock is released.
//
// At start, package index builds the machine from the store. On a follower in a cluster, a Standby keeps such an
// index up to date, and the engine starts with it when that node becomes the leader.
package engine
