// Package faktory speaks the protocol of a Faktory work server, version 2, to clients and workers that were made for it.
//
// # Words
//
//	Faktory                 here
//	jid                     Job.ID
//	jobtype                 Job.Type
//	PUSH, PUSHB             core.Submit
//	FETCH                   core.Lease, in the order of the queues named, parked for two seconds
//	reservation             a lease held by the worker's id: it outlives the connection
//	ACK, FAIL               core.Complete, core.Fail, by anybody while the job is leased
//	retries, dead set       core.Retrying, core.Dead
//	reserve_for, retry      Job.LeaseFor, Job.MaxFails with core.BackoffFaktory
//	custom.unique_for …     Job.UniqueKey, core.UniqueRefuse
//	custom.expires_at …     Job.StartBefore
//	custom.track            Job.RetainFor, so that TRACK GET finds the end of the job
//	custom.bid, BATCH       Job.Batch, core.OpenBatch
//	custom.priority         Job.Priority (ours)
//	custom.after, .parent   Job.After, Job.Parent, named by jid (ours)
//	result in ACK           Complete.Result (ours)
//	QUEUE, FLUSH, MUTATE    core.PauseQueue, core.Purge, core.PurgeBatches, core.ListJobs with Cancel, Bury, Enqueue
//
// # A request line
//
//	VERB SP argument CRLF        LF alone will do; the argument is JSON or words
//
// Replies are +OK, -CODE text, $length bulk and $-1, in the order of the requests. One line is read at a time; what
// several lines of one read ask is handed to the broker in one call.
//
// # JSON
//
// A job's args, its custom object and every member we do not know are carried as the bytes that came: no number is ever
// converted. The scanner of scan.go reads a work unit in one pass; encoding/json is asked only to say what is wrong
// with one, so that the error texts are those that clients know. What the canonical job has no field for is kept in
// Job.Attributes as a JSON object.
//
// # Differences from the reference, on purpose
//
// Queue names are checked at PUSH, also for scheduled jobs. An explicit retry of one job does not become the default of
// the next. A quiet worker gets nothing on any of its connections. Invalid UTF-8 is refused instead of being rewritten.
// A jid that is live cannot be pushed again, unless the job is the same: then nothing is added and the answer is +OK; a
// dead job makes room for one with its jid. A line beyond the limit gets an error and is dropped; the connection goes
// on.
package faktory
