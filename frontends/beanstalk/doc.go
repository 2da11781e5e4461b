// Package beanstalk speaks the Beanstalk protocol, as beanstalkd 1.12 does.
//
// # Framing
//
// A request is a line of at most 224 bytes that ends with CRLF; put has a body after it. A verb is lower case and ends
// at one space. Numbers are decimal digits, with any number of spaces before them; names have one space. A line that is
// too long is skipped. The body of a refused put is skipped, so that a payload is never parsed as commands; a body
// without its CRLF ends the connection.
//
//	put <pri> <delay> <ttr> <bytes>   INSERTED <id>
//	reserve, reserve-with-timeout     RESERVED <id> <bytes>, body
//	reserve-job <id>                  RESERVED <id> <bytes>, body
//	delete, release, bury, touch      DELETED, RELEASED, BURIED, TOUCHED
//	peek, peek-ready, …               FOUND <id> <bytes>, body
//	kick, kick-job                    KICKED
//	use, watch, ignore, pause-tube    USING, WATCHING, PAUSED
//	stats, stats-job, stats-tube      OK <bytes>, YAML dictionary
//	list-tubes, list-tubes-watched    OK <bytes>, YAML list
//
// # Blocking
//
// A connection executes one command at a time. Commands after a waiting reserve are read once it has its answer.
//
// # Terms
//
//	Beanstalk         core
//	tube              queue, with the configured namespace as a prefix
//	id                Seq, of jobs of every origin
//	pri               Priority = 1024 − pri: the usual 1024 is 0
//	ttr               LeaseFor; LeaseEndAttempt
//	delay             ReadyAt
//	reserved          Leased, by a client of any protocol
//	delayed           Scheduled, Retrying, Blocked
//	buried            Dead
//	reserves          Attempts
//	timeouts, …       Tally
//
// Jobs of equal priority are in the order of their numbers (Job.SeqOrder), even after a delay or release.
//
// # Deviations
//
// The end of a ttr is exact. Waiting reserves are served in order. Ids are never reused. A job is buried after twenty
// lost leases in a row (poison_after).
package beanstalk
