// Package cli holds the commands that talk to a running broker over its HTTP API: submitting, finding, watching and
// changing jobs, queues and the rest. They use only the API, so a script with curl can do the same, and `-o json`
// prints the answer of the API; import, record, replay and shadow speak to other servers too. Tables show answers that
// were decoded into the types of package service, from which the API makes them.
//
// client.go is the HTTP client, contexts.go stores named brokers, completion.go completes words, output.go prints
// tables and JSON, exit.go lists the exit codes. Every other file contains the commands in its name.
package cli

import "github.com/spf13/cobra"

// The groups of commands in the help.
const (
	GroupServer  = "server"
	GroupJobs    = "jobs"
	GroupQueues  = "queues"
	GroupOperate = "operate"
)

// Commands are all commands of this package, each with its group.
func Commands() []*cobra.Command {
	groups := map[string][]*cobra.Command{
		GroupJobs: append([]*cobra.Command{
			pushCommand(), runCommand(), workCommand(), jobsCommand(), jobCommand(), workflowCommand(),
		}, actionCommands()...),
		GroupQueues: {
			queuesCommand(), pauseCommand("pause", true), pauseCommand("resume", false), workersCommand(),
			batchesCommand(), schedulesCommand(), limitsCommand(), policiesCommand(), topCommand(), tailCommand(),
		},
		GroupOperate: {
			drainCommand(), settingsCommand(), reloadCommand(), contextCommand(), tokenCommand(), auditCommand(),
			undoCommand(),
			markCommand(), marksCommand(),
			clusterCommand(), healthcheckCommand(), importCommand(), recordCommand(), replayCommand(),
		},
	}
	var all []*cobra.Command
	for group, commands := range groups {
		for _, c := range commands {
			c.GroupID = group
			addCompletions(c, "")
			all = append(all, c)
		}
	}
	return all
}
