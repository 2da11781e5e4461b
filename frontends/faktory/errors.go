package faktory

import (
	"errors"
	"strings"

	"github.com/tidwall/redcon"

	"broker/core"
)

// wireErrors is what a client is told for each kind of refusal: code and text. NAME stands for what it had asked about.
// Clients raise on ERR and hand any other code to the program.
var wireErrors = []struct {
	kind error
	text string
}{
	{core.ErrNotFound, "ERR Job not found NAME"},
	{core.ErrNotLeased, "ERR Job not found NAME"}, // no reservation: the reference knows reserved jobs only
	{core.ErrNotHolder, "ERR Job not found NAME"},
	{core.ErrFinished, "ERR Job not found NAME"},
	{core.ErrDuplicate, "ERR a different job with the jid NAME exists"},
	{core.ErrNotUnique, "NOTUNIQUE Job not unique"},
	{core.ErrNoQueue, "ERR no such queue NAME"},
	{core.ErrFull, "ERR queue NAME is full"},
	{core.ErrBusy, "ERR connection or queue is in use"},
	{core.ErrInvalid, "ERR invalid job or command NAME"},
	{core.ErrDiskFull, "ERR disk is nearly full, no new jobs are taken"},
	{core.ErrStopped, "ERR storage has failed, no work is taken"},
	{core.ErrDraining, "ERR broker is draining, no new jobs are taken"},
	{core.ErrShutdown, "ERR shutdown in progress"},
	{core.ErrNoBatch, "ERR " + noSuchBatch},
	{core.ErrBatchState, "ERR batch NAME does not allow this any more"},
	{core.ErrConflict, "ERR job NAME has changed"},
	{core.ErrHasDependents, "ERR other jobs wait for job NAME"},
}

// noSuchBatch has the words twice: clients of the paid edition look for its spelling, with a capital.
const noSuchBatch = "no such batch NAME: No such batch is known here"

// unforeseen is said of an error that the table does not know: nothing of it is the client's business.
const unforeseen = "ERR internal error"

// errorText is code and text of a refusal.
func errorText(err error, name string) string {
	for _, row := range wireErrors {
		if errors.Is(err, row.kind) {
			return named(row.text, name)
		}
	}
	return unforeseen
}

// named puts a name into a text; without one there is no gap either.
func named(text, name string) string {
	if name == "" {
		return strings.ReplaceAll(text, " NAME", "")
	}
	return strings.ReplaceAll(text, "NAME", name)
}

// appendRefusal appends a client's mistake, whose text is cut to maxEcho: it may hold what the client sent.
func appendRefusal(b []byte, text string) []byte {
	return redcon.AppendError(b, "ERR "+core.CutText(text, maxEcho))
}

// maxEcho is how much of a request comes back in an error, in bytes.
const maxEcho = 4096
