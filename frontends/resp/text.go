package resp

import (
	"strings"

	"broker/core"
)

// RedisVersion is what INFO reports: clients look whether it is new enough.
const RedisVersion = "7.0.15"

// MaxEcho is how much of what a client sent is repeated in an error.
const MaxEcho = 128

// OneLine is a text that fits into an error line.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\r' || r == '\n' {
			return ' '
		}
		return r
	}, core.CutText(s, MaxEcho))
}

// UnknownCommand words the refusal of a command as Redis does.
func UnknownCommand(args []string) string {
	var b strings.Builder
	b.WriteString("ERR unknown command '" + OneLine(args[0]) + "', with args beginning with: ")
	for _, a := range args[1:] {
		if b.Len() > MaxEcho {
			break
		}
		b.WriteString("'" + OneLine(a) + "' ")
	}
	return b.String()
}

// WrongArity words the refusal of a command with too few or too many words.
func WrongArity(name string) string {
	return "ERR wrong number of arguments for '" + core.CutText(name, MaxEcho) + "' command"
}

// OnlySubscriptions words the refusal of a command of a client that is subscribed.
func OnlySubscriptions(name string) string {
	return "ERR Can't execute '" + name +
		"': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
}

// NoPermission words the refusal of a command that a client may not run.
func NoPermission(name string) string {
	return "NOPERM this user has no permissions to run the '" + OneLine(name) + "' command"
}
