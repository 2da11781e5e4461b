// Package workq speaks the protocol of the Workq job server 0.2.0.
//
// # Framing
//
// A request is a line of tokens, parted by blanks and ended by CRLF; some have a body behind it, whose size is the line's
// last argument, and CRLF again. A token -key=value is a flag and may stand anywhere behind the command word.
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
// A body that was declared is swallowed whatever is wrong with its line, so that a payload is never taken for commands.
// Behind a line whose flags are wrong it is cut off as behind one that is right, ends that are wrong included. With one
// argument too many it is as long as the last number says, or the one in the size's place, whichever CRLF follows; who had not
// sent a body stays in step too. Behind a line that lacks an argument the body is known by its length only: a line as long
// as the last number says. A body above the limit is swallowed as it comes, without being kept. What cannot be
// swallowed (a line without end, a body of more than maxSkip bytes, a CRLF cut in half by a body that is one byte too
// long) is answered with an error, and the connection is closed.
//
// # Blocking
//
// A connection has one command in work at a time. Those that the broker can answer at once are handed over together
// (batch.go); lease, result and run may have to wait, and then nothing more is read of the connection until the answer
// came. A client that closes its sending side while it waits for a job is answered -TIMEOUT at once, and its run job
// withdrawn: on TCP nobody can tell it from one that is gone, and one that is gone must take no job. A result takes
// nothing: it is waited for, and the connection closed behind it.
//
// # Words
//
//	Workq             core
//	name              queue (with the namespace of the configuration in front)
//	ttr               Job.LeaseFor; LeaseEndAttempt
//	ttl               Job.ExpiresAt and RetainUntil, from the time of a schedule, else from now
//	time              Job.ReadyAt, ScheduledOrder
//	max-fails         Job.MaxFails, BackoffNone
//	fails             JobInfo.Fails; of a job from Workq whose first fail is final 0, as in the reference
//	run               Job.Ephemeral, WatchRun
//	wait-timeout      Until
//	NEW               Scheduled, Blocked, or Ready and never leased
//	PENDING           Ready again, or Retrying
//	COMPLETED, FAILED Done; Dead is FAILED
//	evicted-jobs      Totals.Expired of jobs that came from Workq
//
// A job whose id is no UUIDv4 (it came by another protocol) goes by its alias. Outcomes of jobs that were deleted or
// whose time to live ended reach waiting clients as -NOT-FOUND, which is what they would get from then on.
//
// # Flags of ours
//
// On add, schedule and run, not counted among the flags that a command may have:
//
//	-unique=<key>      refused with "Duplicate unique" while a live job of the queue has this key
//	-type=<type>       what a Faktory worker is told to run; without it: the name
//	-after=<id>[,…]    not ready before all of these jobs are completed
//	-parent=<id>       held until that job is finished, and part of it for those who wait -after it
//
// These ids are those of jobs of any origin: a UUID of any version in any spelling, an alias, a Faktory jid without comma,
// equals sign and blank, a Gearman handle of this broker's.
//
// A value that cannot be one is told as "Invalid Unique", "Invalid Type", "Invalid After" or "Invalid Parent", a job that
// is not there as "After not found" or "Parent not found".
package workq
