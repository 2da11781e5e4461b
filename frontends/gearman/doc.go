// Package gearman speaks the Gearman protocol, binary and text on one port, as gearmand 1.1.20 and its clients do.
//
//	wire.go        bytes ⇄ packets and lines; pure, fuzzed, does not import core
//	packet.go      the packet types: number, name, arguments
//	commands.go    the handler of each packet type
//	session.go     one connection: parses input and runs the pipeline
//	pipeline.go    the messages that are decided together
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
// workload above the limit is refused before it is received. The timeout of CAN_DO_TIMEOUT applies to each job, not to the
// connection. A background job is kept even if foreground clients joined and left it. A unique may have 64 bytes.
// SUBMIT_JOB_SCHED works: the job runs once, at the next matching minute. A field that is empty or * matches always, and all
// fields must match.
//
// Over HTTP, a request that gearmand drops without an answer gets a status: 400, 405, 411, 413 or 431; so does a job that the
// broker refuses: 403 or 503. The answer waits for the end of the job and has all data of the worker as its body; in gearmand a
// WORK_WARNING or WORK_STATUS is the answer, and WORK_DATA overwrites it. The handle in the answer to a job that failed is
// complete, and HEAD has no body.
//
// # Decisions
//
// The protocol does not specify the following. A name at the end of a packet ends at its first NUL, as in gearmand, since
// some clients send one. Text after a NUL in a line is ignored for the same reason. A worker that sends a result above the
// limit loses its connection, since the start of the next packet is unknown, and its job fails: the next worker would only
// send the same result. GET_STATUS_UNIQUE does not find jobs that a route has moved to another queue, since there the
// unique is scoped by function.
package gearman
