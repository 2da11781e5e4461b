// Package conveyor serves clients of Conveyor. To them, the broker looks like a Redis server.
//
// # Steps
//
// Conveyor's clients store their jobs in Redis with plain commands on keys of known patterns (keys.go). This package
// recognizes the steps behind these commands and turns them into operations on the broker's jobs:
//
//	LPUSH N:queue:Q job                      submit                                 add.go
//	LPUSH N:job:P:children job               submit with a parent
//	LPUSH N:job:X:onComplete job             submit after another job and its children
//	ZADD N:scheduled time job                submit for later
//	BRPOP N:queue:Q … wait                   lease, until the connection ends       pop.go
//	SADD N:worker:active:W U                 the worker takes the lease over
//	ZADD N:workers:active now W              extend the worker's leases             registry.go
//	SREM N:worker:active:W U                 complete                               close.go
//	DEL N:job:U … SREM … ZADD N:scheduled    fail and retry                 fail.go
//	DEL N:job:U … SREM … LPUSH N:failed      fail finally
//	DEL N:job:U … SREM … LPUSH N:queue:Q     release
//	LREM, ZREM                               cancel                                 views.go
//	LLEN, LRANGE, ZRANGE, SCARD, GET …       lists and single jobs                  views.go, sets.go
//
// Other commands and keys are refused. commands.go has the table. Those that go through many jobs take turns (walk.go).
//
// On Redis, clients do the remaining work with more commands. Here the broker does it, in the commit of the step that
// causes it: it releases children when their parent has run, heirs when a job and its children are closed, and
// scheduled jobs when they are due. So the commands for this work (RPOP, ZRANGEBYSCORE) never find a job.
//
// # Jobs
//
// A job is a protobuf message (wire.go). Its payload is the body for workers of other protocols. The bytes around it
// are stored as attributes, so that Conveyor's workers get the same bytes back. The field retry of a failed job
// contains the number of failures.
//
//	Conveyor                    broker
//	uuid                        id
//	queue                       queue; N:queue in namespaces other than "conv"
//	type                        type
//	payload                     body
//	run_at, score               ready at
//	max_retries (3)             failures until the job is dead
//	parent_uuid                 parent
//	predecessor_uuid            after
//	failed list                 dead set
//
// Registered workers and queues, counters, and jobs being closed are in memory only (registry.go). A restart loses
// charts but no jobs.
package conveyor
