// Package hostile makes a broker unreliable on purpose, to test the programs that use it. It injects only faults that a
// real broker or network may cause: duplicate deliveries, leases that end early, refused or reordered jobs, late
// replies, connections that break between two bytes, and a clock that jumps.
//
// It also judges the workers: what they say about the end of each job, and what no fault explains.
//
// Broker is a core.Broker in front of the engine. Frontend wraps a front-end, and Connections wraps a listener of
// net/http, so that their output can be delayed and cut. A fault depends only on the seed, the queue and the number of
// earlier submissions to this queue. Ids, times and requests to other queues have no influence. So the same seed and
// the same requests give the same faults.
//
//	fault.go    the kinds of faults, and how often each happens
//	plan.go     the faults of a job, planned when it is submitted
//	broker.go   operations and replies
//	conns.go    the list of connections, and connections of net/http
//	conn.go     connections of front-ends on the event loop
//	clock.go    a clock that can be set
//	log.go      the faults so far
//	judge.go    what workers do with each job
//	verdict.go  which of that is a mistake
package hostile
