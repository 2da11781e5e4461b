// Package gearman speaks the Gearman protocol, binary and text on one port, as gearmand 1.1.20 and its clients do.
//
//	wire.go        bytes ⇄ packets and lines; pure, fuzzed, does not import core
//	packet/        the packet types: number, name, fields
//	commands.go    the handler of each packet type
//	session.go     one connection: parses input and runs the pipeline
//	pipeline.go    the messages that go to the broker in one call
//	mapping.go     packet → core.Op
//	answers.go     core.Reply → packet
//	attributes.go  the unique keys of jobs, and job fields that only Gearman has, as they are stored
//	names.go       function ⇄ queue: namespace and routes
//	schedule.go    the times of SUBMIT_JOB_SCHED and SUBMIT_JOB_EPOCH
//	nojobdelay.go  when NO_JOB is delayed
//	errors.go      core error → ERROR packet, ERR line
//	admin.go       the text commands
//	listing.go     text commands with long answers, in pages
//	workers.go     the connections and their functions, for the text command workers
//	http.go        gearmand's HTTP protocol: one connection, one job
//	httpwire.go    bytes of an HTTP request → submission; pure
//
// # Terms
//
//	Gearman                          core
//	function                         queue (and type)
//	unique                           UniqueKey, coalescing, in a key space that other protocols cannot use
//	workload                         body, Raw
//	background, foreground           stored; ephemeral with a streaming watch
//	high, normal, low                priority 1, 0, -1
//	grab                             lease held by the connection
//	PRE_SLEEP, NOOP                  Sleep, Woken
//	WORK_COMPLETE, _FAIL, _EXCEPTION Complete, Fail, Fail with Exception
//	WORK_STATUS, _DATA, _WARNING     Report, SendData
//	H:host:N                         Seq N
//
// # Improvements over gearmand
//
// Packets that make gearmand hang, crash or close silently get an ERROR; the connection is closed if framing is lost. A
// workload above the limit is refused before it is received. The timeout of CAN_DO_TIMEOUT applies to each job, not to
// the connection. A background job survives even if foreground clients joined and left it. A unique may have 64 bytes.
// SUBMIT_JOB_SCHED works: the job runs once, at the next minute that matches all fields. An empty field or * matches
// any value.
//
// Over HTTP, requests that gearmand drops without an answer get a status: 400, 405, 411, 413 or 431. A job that the
// broker refuses gets 403 or 503. The answer waits for the end of the job, and its body is all data from the worker. In
// gearmand, the first WORK_WARNING or WORK_STATUS is the answer, and WORK_DATA overwrites it. The answer for a failed
// job has the complete handle. The answer to HEAD has no body.
//
// # Decisions
//
// The protocol does not specify the following. A name at the end of a packet ends at its first NUL, as in gearmand,
// since some clients send one. Text after a NUL in a line is ignored for the same reason. A worker that sends a result
// above the limit loses its connection, because the start of the next packet is unknown. Its job fails, because the
// next worker would send the same result. GET_STATUS_UNIQUE does not find jobs that a route has moved to another queue:
// there, unique keys include the function.
package gearman
