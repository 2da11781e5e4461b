// Package table holds the jobs of a machine and what finds them: by number, id, unique key, tag, failure group, state and worker. It
// counts them by state, keeps the names of queues in order, and has the time and the deadlines, which all rules share.
//
// It also knows which jobs have changed since the last commit: Seal turns them into one record.CommitBatch, in which each job occurs
// once, in its present state. JobCommit and its siblings say on which commit a reply depends.
//
// It decides nothing. The machine says when a job changes its state, and must call Unlist before the fields change by which a list is
// ordered. It knows no client, no limit and no disk.
//
// A job is an Entry of fixed size without pointers, in pages, identified by a 32-bit handle that is reused once the job is gone. What
// only some jobs have is in side maps: Optional while the job exists, Transient until the store has it.
package table
