package resp

import (
	"strconv"
	"strings"

	"github.com/tidwall/redcon"
)

// This file serves the commands that Redis libraries send when they connect, and that people use to check a server. args are
// the words of the command.

// NotInteger is Redis's error for an argument that is not a number.
const NotInteger = "ERR value is not an integer or out of range"

// AppendPing serves PING; a client that is subscribed gets a message.
func AppendPing(b []byte, args []string, subscribed bool) []byte {
	text := strings.Join(args[1:], "")
	switch {
	case subscribed:
		return redcon.AppendBulkString(redcon.AppendBulkString(redcon.AppendArray(b, 2), "pong"), text)
	case len(args) > 1:
		return redcon.AppendBulkString(b, text)
	}
	return redcon.AppendString(b, "PONG")
}

// AppendSelect serves SELECT. There is only database 0.
func AppendSelect(b []byte, args []string) []byte {
	n, err := strconv.Atoi(args[1])
	switch {
	case err != nil:
		return redcon.AppendError(b, NotInteger)
	case n != 0:
		return redcon.AppendError(b, "ERR DB index is out of range")
	}
	return redcon.AppendOK(b)
}
