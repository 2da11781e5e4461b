// Package importer moves the jobs of another server into this broker. It reads gearmand and beanstalkd over their own
// protocols, and Faktory over its protocol or from its Redis. It submits Gearman and Faktory jobs over the same
// protocol, so that they arrive as if their own client had submitted them. It submits beanstalkd's jobs over the HTTP
// API.
//
// A job is removed from the source only after the broker has acknowledged it. So an import can be killed at any moment
// without losing jobs, and started again. Some jobs of the last batch may then be submitted twice. The broker
// recognises them: Gearman jobs by their unique if they have one, Faktory jobs by their jid, beanstalkd jobs by an id
// that is derived from the server and the job.
//
// A job that this broker refuses stays at the source and is reported; all others move. If jobs are left, Run returns
// ErrLeft, and the report gives the reason for each queue and state.
//
// importer.go runs an import and report.go counts. gearman.go (with relay.go for results), faktory.go, redis.go and
// beanstalk.go each implement one source. packet.go, resp.go and beanstalk_conn.go are connections; migrate/wire has
// the framing of the protocols.
package importer
