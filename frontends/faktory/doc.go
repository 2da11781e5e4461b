// Package faktory is a Faktory work server, protocol version 2, for unmodified Faktory clients and workers.
//
// # Terms
//
//	Faktory                 broker
//	jid                     Job.ID
//	jobtype                 Job.Type
//	PUSH, PUSHB             core.Submit
//	FETCH                   core.Lease, queues in the order given, parked for two seconds
//	reservation             a lease held by the worker's id; it outlives the connection
//	ACK, FAIL               core.Complete, core.Fail, from any connection while the job is leased
//	retries, dead set       core.Retrying, core.Dead
//	reserve_for, retry      Job.LeaseFor, Job.MaxFails with core.BackoffFaktory
//	custom.unique_for …     Job.UniqueKey, core.UniqueRefuse
//	custom.expires_at …     Job.StartBefore
//	custom.track            Job.RetainFor, so that TRACK GET finds the job after its end
//	custom.bid, BATCH       Job.Batch, core.OpenBatch
//	custom.priority         Job.Priority (an extension)
//	custom.tags             Job.Tags (an extension)
//	custom.after, .parent   Job.After, Job.Parent, named by jid (an extension)
//	result in ACK           Complete.Result (an extension)
//	QUEUE, FLUSH, MUTATE    core.PauseQueue, core.Purge, core.PurgeBatches, core.ListJobs with Cancel, Bury, Enqueue
//
// # Request lines
//
//	VERB SP argument CRLF        a bare LF is accepted; the argument is JSON or words
//
// Replies are +OK, -CODE text, $length bulk and $-1, in the order of the requests. All requests that arrive together
// are passed to the broker in one call.
//
// # JSON
//
// A job's args, its custom object and its unknown members are stored as the bytes that the client sent: numbers are
// never converted. The scanner in scan.go reads a job in one pass. encoding/json only produces the error texts for a
// bad job, because clients know these texts. Members without a field in core.Job are stored in Job.Attributes as a JSON
// object.
//
// # Nodes
//
// At a node of a cluster that follows, the front-end asks that of the leader for what clients of all nodes share
// (shared.go): workers and their states, numbers in INFO, the limit of connections, the prefix of batch ids. A worker
// that goes quiet at one node may get a job at another until the leader has told that node.
//
// # Limits
//
// PUSH, PUSHB and ACK lines may be as long as Options.MaxBodyBytes, all others 1 MiB. A job has at most 1,000 unknown
// members, a jobtype at most 1,024 bytes, a PUSHB at most 100,000 jobs, a pattern of MUTATE at most 256 bytes. Errors
// in lines beyond 64 KiB are not explained. PUSHB, MUTATE, FLUSH and QUEUE REMOVE run in bounded steps; other
// connections are served between them.
//
// # Intended differences from the reference
//
//   - Queue names are checked at PUSH, also for scheduled jobs.
//   - An explicit retry of one job does not become the default of the next.
//   - A quiet worker gets no jobs on any of its connections.
//   - Invalid UTF-8 is refused, not rewritten.
//   - A client cannot push the jid of a live job again, unless the new job is identical. If a worker is running the job, it
//     runs once more after this run; otherwise nothing is added and the answer is +OK. A dead job is replaced.
//   - A line beyond its limit gets an error and is dropped; the connection stays open.
package faktory
