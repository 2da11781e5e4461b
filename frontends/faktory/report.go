package faktory

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"broker/core"
)

// Limits of a stored failure, in bytes and lines.
const (
	maxErrType   = 100
	maxMessage   = 1000
	maxBacktrace = 50
	maxTraceLine = 8 << 10
)

// parseAck reads the argument of ACK. As in the reference server, all members must be strings. The exception is the
// extension result: a string counts as its text, any other value as its JSON.
func parseAck(arg []byte) (jid string, result []byte, ok bool) {
	if !utf8.Valid(arg) {
		return "", nil, false
	}
	s := scanner{data: arg}
	found := false
	ok = s.members(0, func(name, value []byte) bool {
		switch {
		case string(name) == "result":
			if value[0] == '"' {
				value = decodeString(value)
			}
			result = append([]byte(nil), value...) // value is part of the request line
			return true
		case value[0] != '"' && value[0] != 'n':
			return false
		case string(name) == "jid":
			found, jid = true, ""
			if value[0] == '"' {
				jid = string(decodeString(value))
			}
		}
		return true
	})
	return jid, result, ok && found && s.atEnd()
}

// parseFail reads the argument of FAIL and cuts it to the limits. It replaces invalid UTF-8, because an error message
// may contain any bytes, and because after an error the job would stay reserved. The error is sent to the client.
func parseFail(arg []byte) (jid string, failure *core.Failure, err error) {
	var fail struct {
		JID       string   `json:"jid"`
		Message   string   `json:"message"`
		ErrType   string   `json:"errtype"`
		Backtrace []string `json:"backtrace"`
	}
	if json.Unmarshal(arg, &fail) != nil {
		return "", nil, fmt.Errorf("invalid FAIL %s", arg)
	}
	if fail.JID == "" {
		return "", nil, errors.New("missing JID")
	}
	trace := make([]string, min(len(fail.Backtrace), maxBacktrace))
	for i := range trace {
		trace[i] = strings.Clone(core.CutText(fail.Backtrace[i], maxTraceLine))
	}
	return fail.JID, &core.Failure{
		Type:      cmp.Or(cutText(fail.ErrType, maxErrType), "unknown"),
		Message:   cmp.Or(cutText(fail.Message, maxMessage), "unknown"),
		Backtrace: trace,
	}, nil
}
