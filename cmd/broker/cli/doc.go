// Package cli holds the commands that talk to a running broker over its HTTP API: submitting, finding, watching and
// changing jobs, queues and the rest. They use nothing but the API, so that whatever they can do, a script with curl can
// do as well, and `-o json` prints what the API answered.
//
// client.go is the HTTP client, output.go prints tables and JSON, exit.go lists the exit codes; every other file holds the
// commands that its name says.
package cli

// The groups of commands in the help.
const (
	GroupServer  = "server"
	GroupJobs    = "jobs"
	GroupQueues  = "queues"
	GroupOperate = "operate"
)
