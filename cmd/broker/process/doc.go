// Package process is a running broker. It builds the parts from the settings, serves, and closes the parts in reverse.
//
// process.go groups the parts by how long they live: the launch and the ports as long as the process (bind.go,
// frontends.go, http.go), a term as long as a store is open (term.go), and the settings until a reload (reload.go).
//
// Settings are read once, into the values that the parts take; settings.go also has reconcile, by which a reload
// changes only what differs. limits.go, policies.go, schedules.go and push.go translate settings for the parts.
//
// run.go runs a broker that stands alone, cluster.go a node of a cluster, and sessions.go the front-ends of a node that
// follows. makers in frontends.go is the table of the front-ends.
//
// It knows nothing of the command line. The commands that serve (serve, demo, test, gearmand, beanstalkd) call it.
package process
