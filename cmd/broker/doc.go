// Command broker serves Workq, Gearman, Faktory, Qless and HTTP clients from one store of jobs.
//
// It only connects the parts: root.go defines the commands, run.go builds the parts in order, serves, and closes them in
// reverse; frontends.go lists the front-ends of this build; flags.go, backup.go and doctor.go contain the commands that do
// not serve; gearmand*.go implement gearmand's command line, log and daemon mode.
package main
