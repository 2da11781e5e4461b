// Command broker serves Workq, Gearman and Faktory clients from one store of jobs.
//
// It is wiring only: main.go picks the command, run.go builds the parts in order, serves, and takes them down in reverse;
// frontends.go is the one list of front-ends in this build; logging.go turns events into log lines; flags.go, backup.go and
// doctor.go have the commands that serve nobody; gearmand*.go speak gearmand's command line, its log and its way into the background.
package main
