// Package gearman speaks the Gearman protocol, binary and text on one port, as gearmand 1.1.20 and its clients do.
//
//	wire.go        bytes ⇄ packets and lines; pure, fuzzed, knows no core
//	packet.go      the packet types: number, name, arguments
//	commands.go    which packet runs what
//	session.go     one connection: cut input, collect operations, one Do a Feed, answers in order
//	pipeline.go    the messages that are decided together, and what their answers need
//	mapping.go     packet → core.Op, core.Reply → packet
//	attributes.go  the fields of a job that only Gearman knows, as they are stored
//	names.go       function ⇄ queue: namespace and routes
//	schedule.go    SUBMIT_JOB_SCHED and SUBMIT_JOB_EPOCH: when is that
//	errors.go      core error → ERROR packet, ERR line
//	admin.go       the text commands; listing.go: those with an answer in pages; workers.go: who is connected
//
// # Words
//
//	Gearman                          ours
//	function                         queue (and type)
//	unique                           UniqueKey, coalescing, in a scope that no other protocol reaches
//	workload                         body, Raw
//	background, foreground           stored, ephemeral with a streaming watch
//	high, normal, low                priority 1, 0, -1
//	grab                             lease held by the connection
//	PRE_SLEEP, NOOP                  Sleep, Woken
//	WORK_COMPLETE, _FAIL, _EXCEPTION Complete, Fail, Fail with Exception
//	WORK_STATUS, _DATA, _WARNING     Report, Emit
//	H:host:N                         Seq N
//
// # Where we are better than gearmand
//
// Packets that make it hang, crash or close without a word get an ERROR and, where framing is lost, a close. A workload
// over the limit is refused before its bytes are taken. The timeout of CAN_DO_TIMEOUT belongs to the job. A background
// job is kept whoever else waited for it and left. A unique may have 64 bytes. SUBMIT_JOB_SCHED works: once, at the next
// matching minute; a field that is empty or * matches always, and all fields must match.
//
// # Not told by the protocol, decided here
//
// A name that ends its packet is cut at its first NUL, as gearmand does: some clients send one. The text after a NUL in
// a line is ignored for the same reason. A worker whose result is over the limit loses its connection, for where the next
// packet begins is unknown, and its job fails: given to the next worker it would end the same way. GET_STATUS_UNIQUE does
// not find jobs that a route has put into another queue, for their unique is scoped by function there.
package gearman
