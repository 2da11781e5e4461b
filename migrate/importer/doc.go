// Package importer moves the jobs of another server into this broker: gearmand's and beanstalkd's over their own protocols,
// Faktory's over its protocol or out of its Redis. Gearman and Faktory jobs are submitted over the same protocol, so that they
// arrive as if their own client had submitted them; beanstalkd's jobs over the HTTP API.
//
// A job is removed from the source only after the broker has acknowledged it, so an import that is killed at any moment loses
// nothing and can be started again. A few jobs of the last batch may then arrive twice, unless they are recognised: Gearman
// jobs by their unique if they have one, Faktory jobs by their jid, beanstalkd jobs by an id derived from the server's and the job's.
//
// A job that this broker refuses stays at the source and is reported; all others move. An import is complete only if nothing is left:
// otherwise Run returns ErrLeft, and the report says why for each queue and state.
//
// importer.go runs an import, report.go counts; gearman.go (with relay.go for results), faktory.go, redis.go and beanstalk.go know one
// source each; packet.go, resp.go and beanstalk_conn.go are the protocols' framing.
package importer
