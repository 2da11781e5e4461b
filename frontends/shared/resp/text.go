package resp

import (
	"strings"

	"broker/core"
)

// Loading is the error of Redis for commands that need its data before that is loaded. Clients know its first word.
const Loading = "LOADING Redis is loading the dataset in memory"

// RedisVersion is the version that INFO reports. Some clients require a minimum version.
const RedisVersion = "7.0.15"

// maxEcho limits how many bytes of a client's input an error repeats.
const maxEcho = 128

// OneLine makes a text fit into an error line.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\r' || r == '\n' {
			return ' '
		}
		return r
	}, core.CutText(s, maxEcho))
}

// unknownCommand is Redis's error for an unknown command.
func unknownCommand(args []string) string {
	var b strings.Builder
	b.WriteString("ERR unknown command '" + OneLine(args[0]) + "', with args beginning with: ")
	for _, a := range args[1:] {
		if b.Len() > maxEcho {
			break
		}
		b.WriteString("'" + OneLine(a) + "' ")
	}
	return b.String()
}

// NotInteger is Redis's error for an argument that is not a number.
const NotInteger = "ERR value is not an integer or out of range"

// WrongArity is Redis's error for a command with too few or too many words.
func WrongArity(name string) string {
	return "ERR wrong number of arguments for '" + core.CutText(name, maxEcho) + "' command"
}

// onlySubscriptions is Redis's error for a command that a subscribed client may not send.
func onlySubscriptions(name string) string {
	return "ERR Can't execute '" + name +
		"': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
}

// NoPermission is Redis's error for a command that the client may not run.
func NoPermission(name string) string {
	return "NOPERM this user has no permissions to run the '" + OneLine(name) + "' command"
}
