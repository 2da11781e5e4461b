// Command broker serves the clients of several protocols from one store of jobs.
//
// It only connects the parts. root.go defines the commands. process.go groups the parts by how long they live: as long as the
// program, as long as a store is open (term.go), or until a reload (reload.go). run.go builds them in order, serves, and closes them
// in reverse; cluster.go does so for a node of a cluster. frontends.go lists the front-ends. flags.go, backup.go, archive.go and
// doctor.go contain the commands that do not serve. The command lines of others are packages: cli, gearmand, beanstalkd.
package main
