package console

import (
	"slices"
	"strconv"
	"strings"

	"broker/operate/service"
)

// changeUndo undoes the changes that a form names, the last one first.
func changeUndo(r *request) (*view, error) {
	back := pageOf(r.PostFormValue("back"), "operations")
	ids := strings.Fields(r.PostFormValue("ids"))
	if len(ids) == 0 || len(ids) > maxUndone {
		return nil, invalid("ids", "the form is incomplete: load the page again")
	}
	note := "Undone."
	for _, id := range slices.Backward(ids) {
		if name, ofLog := strings.CutPrefix(id, service.AuditPrefix); ofLog {
			number, err := strconv.ParseUint(name, 10, 64)
			if err == nil {
				err = r.service.UndoChange(r.Context(), r.caller, number)
			} else {
				err = invalid("ids", "expected the number of an entry")
			}
			if err != nil {
				return nil, err
			}
			continue
		}
		op, err := r.service.UndoOperation(r.Context(), r.caller, id)
		if err == nil {
			op, err = r.service.WaitOperation(r.Context(), r.caller, op.ID, bulkWait)
		}
		if err != nil {
			return nil, err
		}
		note = undoneText(op)
	}
	r.caller.Made.IDs = nil // an undo is undone by doing it again
	return r.back(back, note)
}

// undoneText says what an undo has done.
func undoneText(op service.Operation) string {
	switch {
	case op.Undoes == "" && op.Changed == 0: // it was pending
		return "Undone: nothing was changed."
	case op.Undoes == "":
		return "It was too late to undo: " + plural(op.Changed, "job") + " had been changed."
	case op.FinishedAt == nil:
		return "The undo has begun: " + plural(op.Matched, "job") + "."
	case op.Skipped > 0:
		return "Undone: " + plural(op.Changed, "job") + " put back. " + plural(op.Skipped, "job") +
			" had changed since and stayed as they were."
	}
	return "Undone: " + plural(op.Changed, "job") + " put back."
}
