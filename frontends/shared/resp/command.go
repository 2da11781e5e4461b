package resp

import (
	"strings"

	"broker/access"
)

// Command is a row of the table of commands of a front-end, whose sessions are S.
type Command[S any] struct {
	// Run appends the reply, which waits for what Run asks; see Connection.Do. If it appends nothing, the reply comes
	// later.
	Run func(s S, b []byte, args []string) []byte

	Min, Max   int  // number of words, including the name; Max zero: no limit
	Open       bool // allowed without a password
	Subscribed bool // allowed while the client is subscribed
	Immediate  bool // not queued in a transaction

	// WhileLoading is set for commands that do not use the state of the front-end: they are allowed before it is
	// loaded.
	WhileLoading bool

	// Roles are the sufficient roles; none: every client may send the command. The front-end says for which queues the
	// client needs the role.
	Roles []access.Role
}

// Find returns the command that args call, and its name. If the connection may not send it now, refusal is the error
// text.
func Find[S any](table map[string]Command[S], c *Connection, args []string) (row Command[S], name, refusal string) {
	name = strings.ToLower(args[0])
	row, known := table[name]
	switch {
	case !c.Authorized && !row.Open:
		refusal = "NOAUTH Authentication required."
	case !known:
		refusal = unknownCommand(args)
	case len(args) < row.Min || row.Max > 0 && len(args) > row.Max:
		refusal = WrongArity(name)
	case c.Subscriber.Count() > 0 && !row.Subscribed:
		refusal = onlySubscriptions(name)
	}
	return row, name, refusal
}
