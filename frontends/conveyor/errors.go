package conveyor

import (
	"errors"

	"github.com/tidwall/redcon"

	"broker/core"
	"broker/frontends/resp"
)

// Errors for invalid commands of clients.
var (
	errNoUUID        = errors.New("the job has no uuid")
	errNoParent      = errors.New("no such parent, or it has finished: children are accepted while it runs")
	errNoPredecessor = errors.New("no such predecessor")
)

// wireErrors has a row for each kind of refusal. Clients of Redis know the first words: MISCONF and OOM are servers that
// cannot write, and BUSY is one that can be asked again.
var wireErrors = []struct {
	kind error
	text string
}{
	{core.ErrNotFound, "ERR no such job"},
	{core.ErrNoQueue, "ERR no such queue"},
	{core.ErrDuplicate, "ERR a job with this uuid exists"},
	{core.ErrNotUnique, "ERR a live job of the queue holds this unique key"},
	{core.ErrNotLeased, "ERR the job does not run: its lease has ended"},
	{core.ErrNotHolder, "ERR another worker has the job"},
	{core.ErrFinished, "ERR the job has ended"},
	{core.ErrFull, "OOM the queue is full"},
	{core.ErrBusy, "BUSY the connection waits for a job already"},
	{core.ErrInvalid, "ERR the broker cannot keep such a job"},
	{core.ErrDiskFull, "OOM the disk is nearly full, no new jobs are accepted"},
	{core.ErrStopped, "MISCONF the store failed, no changes are accepted"},
	{core.ErrDraining, "BUSY the broker is draining, no new jobs are accepted"},
	{core.ErrShutdown, "LOADING the broker is shutting down"},
	{core.ErrNoBatch, "ERR no such batch"},
	{core.ErrBatchState, "ERR the batch does not allow this now"},
	{core.ErrConflict, "BUSY the job is changed by another client, try again"},
	{core.ErrHasDependents, "ERR other jobs wait for this one"},
	{core.ErrForbidden, "NOPERM this user has no permissions to do this"},
	{core.ErrNoLimit, "ERR no such limit"},
	{core.ErrNoSchedule, "ERR no such schedule"},
	{core.ErrConfigured, "ERR set by the configuration file"},
	{errEnvelope, "ERR " + errEnvelope.Error()},
	{errNoUUID, "ERR " + errNoUUID.Error()},
	{errNoParent, "ERR " + errNoParent.Error()},
	{errNoPredecessor, "ERR " + errNoPredecessor.Error()},
}

// errorText is the error line, without its first byte and its end.
func errorText(err error) string {
	for _, row := range wireErrors {
		if errors.Is(err, row.kind) {
			return row.text
		}
	}
	return "ERR internal error"
}

func refuse(b []byte, text string) ([]byte, core.Commit) { return redcon.AppendError(b, text), 0 }
func refuseError(b []byte, err error) []byte             { return redcon.AppendError(b, errorText(err)) }
func ok(b []byte) ([]byte, core.Commit)                  { return redcon.AppendOK(b), 0 }

// refuseKey refuses a key that the command does not serve.
func refuseKey(b []byte, text string) ([]byte, core.Commit) {
	return refuse(b, "ERR the broker does not serve this command with the key '"+resp.OneLine(text)+"'")
}
