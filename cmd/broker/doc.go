// Command broker serves the clients of several protocols from one store of jobs.
//
// root.go defines the commands. Package process is the running broker; serve.go, demo.go, testcommand.go, gearmand.go
// and beanstalkd.go start one. shadow.go runs one in memory beside another server. flags.go, backup.go, archive.go,
// doctor.go, explain.go and detach.go contain the commands that do not serve. Packages gearmand and beanstalkd are the
// command lines of these servers; package cli has the commands that call a running broker.
package main
