// Package access says who a client is and what it may do. A principal has a name, credentials and roles; every front-end
// resolves the principal of a connection or request once and asks it before each operation.
//
//	read      list and inspect queues, jobs, workers and counters
//	produce   submit jobs and wait for their outcome
//	consume   lease jobs, finish them and report on them
//	operate   read, and change or remove jobs and queues, pause, drain
//	admin     everything, also backup, reload, settings and the audit log
//
// read, produce, consume and operate can be limited to queues by patterns. Without principals in the configuration
// everybody is [Everyone].
package access
