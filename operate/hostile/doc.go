// Package hostile makes a broker unreliable on purpose, for the tests of the programs that use it. It does only what a broker or a
// network may do to them: deliver twice, end leases early, refuse, reorder, answer late, lose connections between two bytes, and
// have its clock set.
//
// Broker is a core.Broker in front of the engine; Frontend wraps a front-end, and Connections a listener of net/http, so that the
// bytes of their connections can be delayed and cut. A fault is decided by the seed, the queue and how many jobs were submitted to
// this queue before: ids, times and the order of requests to other queues change nothing. The same seed and the same requests give
// the same faults.
//
//	fault.go    the kinds of faults, and how often each happens
//	plan.go     what happens to a job, decided when it is submitted
//	broker.go   operations and replies
//	conns.go    connections, and those that net/http serves
//	conn.go     connections of front-ends on the event loop
//	clock.go    a clock that is set
//	log.go      what has happened
package hostile
