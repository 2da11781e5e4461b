package console

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"broker/operate/service"
)

// typedAbove is the number of jobs above which the user must type the number to confirm a change.
const typedAbove = 1000

// bulkWait is the time that a page waits for the end of a change before it shows the progress.
const bulkWait = 1500 * time.Millisecond

// undoFor is the delay of a deletion, during which the user can undo it.
const undoFor = 30 * time.Second

// noUndo warns about a deletion of more jobs than can be delayed.
const noUndo = "They are removed at once, whatever their state. So many jobs cannot be kept for an undo."

// bulkWord has the words for a change.
type bulkWord struct{ verb, done, consequence string }

var bulkWords = map[service.JobAction]bulkWord{
	service.ActionRetry: {"Run", "put back", "They become ready now."},
	service.ActionKill: {
		"Kill", "killed",
		"They move to the dead set, from where they can be run again. Workers that have some of them are refused when they finish.",
	},
	service.ActionCancel: {"Cancel", "cancelled", "They are removed unless they have ended. This cannot be undone."},
	actionStop: {
		"Stop", "asked to stop, or removed",
		"Workers are asked to stop those that run, which then end as cancelled, unless they are completed. The others are removed. This cannot be undone.",
	},
	service.ActionDelete: {
		"Delete", "deleted",
		"They are removed in 30 seconds, whatever their state; until then this can be undone. Those that change meanwhile stay.",
	},
	service.ActionMove: {"Move", "moved", "They keep their identity. A lease ends, and dead jobs become ready."},
	service.ActionRerun: {
		"Run again", "submitted again",
		"Copies of those that have ended are submitted, with new ids; the others are skipped.",
	},
	service.ActionPriority: {
		"Change the priority of", "changed", "Jobs with a higher priority are handed out first; 0 is normal.",
	},
}

// bulkActions returns the changes that a list offers, most likely first.
func bulkActions(state string) []choice {
	retry := choice{Value: string(service.ActionRetry), Label: "Run now"}
	kill := choice{Value: string(service.ActionKill), Label: "Kill"}
	cancel := choice{Value: string(service.ActionCancel), Label: "Cancel", Dangerous: true}
	rerun := choice{Value: string(service.ActionRerun), Label: "Run again"}
	stop := choice{Value: string(actionStop), Label: "Stop", Dangerous: true}
	remove := choice{Value: string(service.ActionDelete), Label: "Delete", Dangerous: true}
	move := choice{Value: string(service.ActionMove), Label: "Move"}
	priority := choice{Value: string(service.ActionPriority), Label: "Priority"}
	switch state {
	case "dead":
		return []choice{retry, move, remove}
	case "done":
		return []choice{rerun, remove}
	case "leased":
		return []choice{stop, kill, move, priority, cancel}
	case "scheduled", "retrying": // none of the jobs runs or has ended
		return []choice{retry, move, priority, kill, cancel, remove}
	}
	return []choice{retry, move, priority, kill, stop, cancel, rerun, remove}
}

// actionStop cancels waiting jobs and asks the workers of running jobs to stop.
const actionStop service.JobAction = "stop"

// actionOf returns the action of a button.
func actionOf(value string) service.Action {
	a := service.Action{Action: service.JobAction(value)}
	if a.Action == actionStop {
		a.Action, a.Running = service.ActionCancel, service.RunningSignal
	}
	return a
}

// wordOf is the reverse of actionOf: it returns the key of the words for an action.
func wordOf(a service.Action) service.JobAction {
	if a.Action == service.ActionCancel && a.Running == service.RunningSignal {
		return actionStop
	}
	return a.Action
}

type confirmData struct {
	Question, Button, Consequence, Problem string
	Matched, Gone                          int
	Examples                               []service.Job
	Table                                  jobTable
	All                                    bool
	IDs                                    []string
	Filter, FilterText, Back, Action       string
	Queue, Priority                        string
	Typed, Dangerous                       bool
}

// changeJobs changes the selected jobs, or all jobs that match a filter. Changes that cannot be undone and changes of
// all matching jobs need a confirmation.
func changeJobs(r *request) (*view, error) {
	back := pageOf(r.PostFormValue("back"), "jobs")
	all := r.PostFormValue("scope") == "all"
	selection := service.Selection{Names: r.PostForm["id"], SkipMissing: true}
	query, err := url.ParseQuery(r.PostFormValue("filter"))
	if err != nil {
		return nil, invalid("filter", "the form is incomplete: load the page again")
	}
	if all {
		filter, problems := jobFilter(query, givenStates(query), r.console.options.Now())
		if len(problems) > 0 {
			return nil, invalid(problems[0].Name, problems[0].Text)
		}
		selection = service.Selection{Filter: &filter}
	}
	if !all && len(selection.Names) == 0 {
		return r.back(back, "No job was selected.")
	}
	action, err := r.bulkAction()
	confirmed := r.PostFormValue("confirmed")
	if err != nil && confirmed == "" {
		err = nil // the confirmation page asks for the missing value
	}
	d := &confirmData{
		Action: r.PostFormValue("action"), All: all, Back: back, Filter: query.Encode(), Queue: action.Queue,
		Priority: r.PostFormValue("priority"),
	}
	switch {
	case err != nil:
		d.Problem = err.Error()
	case action.Action == service.ActionRetry && !all:
		return r.startBulk(action, selection, back)
	case confirmed == "":
	case r.mustType(confirmed) && strings.TrimSpace(r.PostFormValue("typed")) != confirmed:
		d.Problem = "The number that was typed is not " + confirmed + "; nothing was changed."
	default:
		if n, err := strconv.Atoi(confirmed); action.Action == service.ActionDelete && err == nil &&
			n <= service.MaxDelayed {
			action.Delay = undoFor
		}
		return r.startBulk(action, selection, back)
	}
	return r.confirm(d, action, selection)
}

// mustType reports whether a change of so many jobs needs the number typed.
func (r *request) mustType(confirmed string) bool {
	n := 0
	_, err := fmt.Sscan(confirmed, &n)
	return err != nil || n > typedAbove
}

// bulkAction reads the change from the form. Its error names missing values.
func (r *request) bulkAction() (service.Action, error) {
	value := r.PostFormValue("action")
	a := actionOf(value)
	a.Queue = strings.TrimSpace(r.PostFormValue("queue"))
	if _, known := bulkWords[service.JobAction(value)]; !known {
		return a, invalid("action", "choose what to do with the jobs")
	}
	switch {
	case a.Action == service.ActionMove && a.Queue == "":
		return a, invalid("queue", "name the queue to move the jobs to")
	case a.Action == service.ActionPriority:
		n, err := parsePriority(r.PostFormValue("priority"))
		a.Priority = &n
		return a, err
	}
	return a, nil
}

// confirm shows how many jobs a change affects, with ten examples.
func (r *request) confirm(d *confirmData, action service.Action, selection service.Selection) (*view, error) {
	word, known := bulkWords[cmp.Or(service.JobAction(d.Action), action.Action)]
	if !known {
		return nil, invalid("action", "choose what to do with the jobs")
	}
	probe := action
	if probe.Action == service.ActionMove && probe.Queue == "" {
		// the queue is not chosen yet; the preview is the same for all changes
		probe = service.Action{Action: service.ActionRetry}
	}
	preview, err := r.service.Preview(r.Context(), r.caller, probe, selection)
	if err != nil {
		return nil, err
	}
	query, err := url.ParseQuery(d.Filter)
	if err != nil {
		return nil, err
	}
	d.Matched, d.Examples = preview.Matched, preview.Examples
	d.Question = word.verb + " " + plural(d.Matched, "job") + "?"
	d.Button, d.Consequence = word.verb+" "+plural(d.Matched, "job"), word.consequence
	d.Table = jobTable{Jobs: preview.Examples, Columns: usualColumns, Empty: "No job matches any more."}
	if action.Action == service.ActionDelete && d.Matched > service.MaxDelayed {
		d.Consequence = noUndo
	}
	if action.CanUndo(d.Matched) {
		d.Consequence += " This can be undone for an hour, until the broker restarts."
	}
	d.Typed = d.Matched > typedAbove
	d.Dangerous = action.Action == service.ActionDelete || action.Action == service.ActionCancel
	if d.All {
		d.FilterText = filterText(query)
	} else {
		d.IDs, d.Gone = selection.Names, len(selection.Names)-d.Matched
	}
	return &view{page: "confirm", title: d.Question, nav: "jobs", data: d, still: true}, nil
}

// startBulk starts the change. It waits for a small change to end, and shows the progress of a large one.
func (r *request) startBulk(action service.Action, selection service.Selection, back string) (*view, error) {
	op, err := r.service.StartAction(r.Context(), r.caller, action, selection)
	if err == nil && op.State == service.OpPending {
		return r.back(back, "") // a notice on the page announces the deletion and can undo it
	}
	if err == nil {
		op, err = r.service.WaitOperation(r.Context(), r.caller, op.ID, bulkWait)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case op.FinishedAt == nil:
		return r.back(back, "The change has begun: "+plural(op.Matched, "job")+".")
	case op.Error != "":
		return nil, errors.New(op.Error)
	}
	if op.UndoUntil != nil {
		r.caller.Made.Add(op.ID)
	}
	note := plural(op.Changed, "job") + " " + bulkWords[wordOf(action)].done + "."
	if op.Skipped > 0 {
		note += " " + plural(op.Skipped, "job") + " had changed or gone meanwhile and stayed as they were."
	}
	return r.back(back, note)
}

// pageOf returns the page of this console to which a form returns.
func pageOf(back, otherwise string) string {
	if strings.Contains(back, "//") || strings.HasPrefix(back, "/") || strings.ContainsAny(back, "\\\r\n") ||
		strings.Contains(strings.SplitN(back, "?", 2)[0], ":") {
		return otherwise
	}
	return cmp.Or(back, otherwise)
}
