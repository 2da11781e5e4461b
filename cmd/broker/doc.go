// Command broker serves the clients of several protocols from one store of jobs.
//
// It only connects the parts. root.go defines the commands. process.go groups the parts by how long they live: as long
// as the program, as long as a store is open (term.go), or until a reload (reload.go). run.go builds them in order,
// serves, and closes them in reverse; cluster.go does so for a node of a cluster. frontends.go lists the front-ends.
// flags.go, backup.go, archive.go, doctor.go, explain.go and detach.go contain the commands that do not serve. Packages
// gearmand and beanstalkd are the command lines of these servers; package cli has the commands that call a running
// broker.
package main
