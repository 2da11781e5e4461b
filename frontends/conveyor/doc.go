// Package conveyor serves clients of Conveyor, which take the broker for a Redis server.
//
// # Steps
//
// Conveyor's clients keep their jobs in Redis with plain commands on keys of known patterns (keys.go). This package recognizes
// the steps that these commands are, and makes operations on the broker's jobs of them:
//
//	LPUSH N:queue:Q job                      submit                                 add.go
//	LPUSH N:job:P:children job               submit with a parent
//	LPUSH N:job:X:onComplete job             submit after another job and its children
//	ZADD N:scheduled time job                submit for later
//	BRPOP N:queue:Q … wait                   lease, until the connection ends       pop.go
//	SADD N:worker:active:W U                 the worker takes the lease over
//	ZADD N:workers:active now W              extend the worker's leases             registry.go
//	SREM N:worker:active:W U                 complete                               close.go
//	DEL N:job:U … SREM … ZADD N:scheduled    fail, with another try                 fail.go
//	DEL N:job:U … SREM … LPUSH N:failed      fail finally
//	DEL N:job:U … SREM … LPUSH N:queue:Q     release
//	LREM, ZREM                               cancel                                 views.go
//	LLEN, LRANGE, ZRANGE, SCARD, GET …       lists and single jobs                  views.go, sets.go
//
// Other commands and keys are refused. commands.go has the table.
//
// The broker does the rest of what clients would do by commands of their own, in the commit of the step that causes it: it
// releases children when their parent has run, heirs when a job and its children are closed, and scheduled jobs when they are due.
// The commands that would do this find nothing left to do: RPOP, ZRANGEBYSCORE.
//
// # Jobs
//
// A job is a protobuf message (wire.go). Its payload is the body, which workers of other protocols get; the bytes around it are
// kept as attributes, so that Conveyor's workers get back what was sent. A job that has failed shows how often, in its field retry.
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
// Workers and queues that check in, counters, and jobs that are being closed are kept in memory only (registry.go): a restart
// loses charts, no jobs.
package conveyor
