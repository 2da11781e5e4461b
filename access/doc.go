// Package access identifies clients and checks their rights. A principal has a name, credentials and roles. Every
// front-end finds the principal of a connection or request once, and checks its roles before each operation.
//
//	read      list and inspect queues, jobs, workers and counters
//	produce   submit jobs and wait for their outcome
//	consume   lease jobs, finish them and report on them
//	operate   read, and change or remove jobs and queues, pause, drain
//	admin     everything, also backup, reload, settings and the audit log
//
// Patterns can limit read, produce, consume and operate to some queues. If no principals are configured, every client
// is [Everyone].
package access
