// Package table holds the jobs of a machine and the indexes that find them by number, id, unique key, tag, failure
// group, state and worker. It counts jobs by state, keeps the names of queues in order, and has the time and the
// deadlines, which all rules share.
//
// It also knows which jobs have changed since the last commit: Seal turns them into one record.CommitBatch, which
// contains each job once, in its current state. JobCommit and similar methods return the commit that a reply depends
// on.
//
// It makes no decisions. The machine changes the states of jobs, and must call Unlist before it changes a field that
// determines the order of a list. The table knows no clients, limits or disk.
//
// A job is an Entry of fixed size without pointers, in pages, identified by a 32-bit handle that is reused once the job
// is gone. Data that only some jobs have is in separate maps: Optional while the job exists, Transient until the store
// has the data.
package table
