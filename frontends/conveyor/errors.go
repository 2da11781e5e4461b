package conveyor

import (
	"errors"

	"github.com/tidwall/redcon"

	"broker/core"
	"broker/frontends/shared/resp"
)

// Errors for invalid commands of clients.
var (
	errNoUUID        = errors.New("the job has no uuid")
	errNoParent      = errors.New("no such parent, or it has finished: children are accepted while it runs")
	errNoPredecessor = errors.New("no such predecessor")
)

// wireErrors has the lines of this front-end. They come before those that all front-ends share.
var wireErrors = map[error]string{
	core.ErrDuplicate: "ERR a job with this uuid exists",
	core.ErrNotLeased: "ERR the job does not run: its lease has ended",
	core.ErrNotHolder: "ERR another worker has the job",
	core.ErrFinished:  "ERR the job has ended",
	core.ErrBusy:      "BUSY the connection waits for a job already",
	errEnvelope:       "ERR " + errEnvelope.Error(),
	errNoUUID:         "ERR " + errNoUUID.Error(),
	errNoParent:       "ERR " + errNoParent.Error(),
	errNoPredecessor:  "ERR " + errNoPredecessor.Error(),
}

// errorText is the error line, without its first byte and its end.
func errorText(err error) string { return resp.ErrorText(wireErrors, err) }

func refuseError(b []byte, err error) []byte { return redcon.AppendError(b, errorText(err)) }

// refuseKey refuses a key that the command does not serve.
func refuseKey(b []byte, text string) []byte {
	if namespace := colonNamespace(text); namespace != "" {
		return redcon.AppendError(b, "ERR the namespace '"+resp.OneLine(namespace)+
			"' contains a colon; the broker serves namespaces without one")
	}
	return redcon.AppendError(b, "ERR the broker does not serve this command with the key '"+resp.OneLine(text)+"'")
}
