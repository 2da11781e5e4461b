// Package workq speaks the protocol of the Workq job server 0.2.0.
//
// # Framing
//
// A request is a line of tokens, separated by spaces and ended by CRLF. Some commands have a body after the line: the
// last argument is its size, and CRLF ends it. A token -key=value is a flag and may stand anywhere after the command
// word.
//
//	add <id> <name> <ttr> <ttl> <size> [flags]      +OK
//	schedule <id> <name> <ttr> <ttl> <time> <size>  +OK
//	run <id> <name> <ttr> <wait> <size>             +OK 1, <id> <0|1> <size>, body
//	result <id> <wait>                              +OK 1, <id> <0|1> <size>, body
//	lease <name>… <wait>                            +OK 1, <id> <name> <ttr> <size>, body
//	complete <id> <size>                            +OK
//	fail <id> <size>                                +OK
//	delete <id>                                     +OK
//	inspect job|jobs|scheduled-jobs|queue|queues|server …
//
// An announced body is always skipped, even if its line is malformed, so that a payload is never parsed as commands
// (skip.go). If only the flags are wrong, the body is skipped as if the line were correct. With one argument too many,
// the size is either the last number or the number in the place of the size: the one that makes CRLF follow the body.
// If neither does, there was no body. With an argument missing, the next line is the body if its length is the last
// number. A body above the limit is discarded as it arrives. The connection is closed after an error that loses
// framing: a line without end, a body of more than maxSkip bytes, or a body that is one byte too long and splits its
// CRLF.
//
// # Blocking
//
// A connection executes one command at a time. Commands that the broker answers at once are pipelined (pipeline.go).
// lease, result and run may have to wait. The session then reads no input until it has the answer. When a client closes
// its sending side while it waits for a job, it gets -TIMEOUT at once, and its run job is cancelled. The reason: on TCP
// such a client looks the same as a client that is gone, which must not take a job. A result takes nothing from other
// clients, so a half-closed client still receives it. Then the connection is closed.
//
// # Terms
//
//	Workq             core
//	name              queue (with the configured namespace as a prefix)
//	ttr               Job.LeaseFor; LeaseEndAttempt
//	ttl               Job.ExpiresAt and RetainUntil, from the time of a schedule, else from now
//	time              Job.ReadyAt, ScheduledOrder
//	max-fails         Job.MaxFails, BackoffNone
//	fails             JobInfo.Fails; 0 for a Workq job whose first fail is final, as in the reference
//	run               Job.Ephemeral, WatchRun
//	wait-timeout      Deadline
//	NEW               Scheduled, Blocked, or Ready and never leased
//	PENDING           Ready again, or Retrying
//	COMPLETED, FAILED Done; Dead is FAILED
//	evicted-jobs      Totals.Expired of Workq jobs
//
// A job from another protocol may have an id that is not a UUIDv4. Workq clients then see its alias. When a job is
// deleted or expires, waiting clients get -NOT-FOUND, the same reply as afterwards.
//
// inspect knows a name while it has jobs or waiting leases, and for ten minutes afterwards.
//
// # Extensions
//
// add, schedule and run accept flags that the reference server does not know. They do not count towards the maximum
// number of flags.
//
//	-unique=<key>      refused with "Duplicate unique" while an unfinished job of the queue has this key
//	-type=<type>       the jobtype for Faktory workers; default: the name
//	-after=<id>[,…]    the job waits until all of these jobs are completed
//	-parent=<id>       the job waits until its parent has finished; jobs that wait -after the parent also wait for this job
//
// These ids may name jobs of any protocol: by a UUID of any version and spelling, an alias, a Gearman handle of this
// broker, or a Faktory jid without commas, equals signs and spaces.
//
// Invalid values are refused with "Invalid Unique", "Invalid Type", "Invalid After" or "Invalid Parent"; jobs that do
// not exist with "After not found" or "Parent not found".
package workq
