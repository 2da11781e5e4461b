package console

import (
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"

	"broker/frontends/shared/tracecontext"
	"broker/operate/service"
)

type jobData struct {
	Job          service.Job
	Why          string
	Trace        string // id of its trace
	TraceURL     string // where the trace is shown; empty: not known
	Forms        []choice
	Body, Custom template.HTML
	Hex          bool   // the body is shown as a hex dump
	Plain        string // the body for copying; empty: it is too long
	LongBody     bool   // the body is folded
	CutBody      int    // number of bytes of the body on the page, if it was cut
	Result       string
	Actions      []choice
	Copies       []copyText
	Graph        template.HTML
	Timeline     []moment
	Attempts     []attempt
	Diff         []diffLine // between the stored body and the body in the form
	Compared     bool
	Log          []service.LogLine
	LogEnd       *time.Time
	Editable     bool
	BodyEditable bool
	Edit         map[string]string // the values in the form
	Epoch        string
	Problem      string
	AskText      bool // the form offers to save a body that is not JSON
}

func jobPage(r *request) (*view, error) {
	d, err := r.job()
	if service.IsCode(err, service.CodeJobNotFound) {
		if gone := r.finishedRecord(r.named("id")); gone != nil {
			return &view{
				page: "gone", title: gone.Type + " " + gone.ID, queue: gone.Queue, nav: "finished", data: gone,
			}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return &view{page: "job", title: d.Job.Type + " " + d.Job.ID, queue: d.Job.Queue, nav: "jobs", data: d}, nil
}

// job reads the data of a job's page.
func (r *request) job() (*jobData, error) {
	j, err := r.service.Job(r.Context(), r.caller, r.named("id"))
	if err != nil {
		return nil, err
	}
	form := bodyForm(&j, r.query.Get("body"))
	shown := j
	cut := cutBody(&shown)
	d := &jobData{
		Job: j, CutBody: cut, LongBody: j.BodyBytes > foldedBody,
		Forms: choices(form, "json", "JSON", "text", "Text", "hex", "Hex"), Body: bodyHTML(&shown, form),
		Hex:    form == "hex",
		Result: resultText(j.Outcome), Actions: jobActions(j.State), Timeline: timeline(&j), Attempts: attemptsOf(&j),
		Trace: tracecontext.TraceID(j.Traceparent),
		Epoch: strconv.FormatUint(uint64(j.Epoch), 10),
	}
	if to := r.console.options.TraceURL; d.Trace != "" {
		d.TraceURL = strings.ReplaceAll(to, "{trace}", d.Trace)
	}
	if cut == 0 {
		d.Plain, d.Copies = bodyText(&j), r.copies(&j)
	}
	if len(j.Custom) > 0 {
		d.Custom = highlightJSON(pretty(j.Custom))
	}
	if d.Why, err = r.whyItWaits(&j); err != nil {
		return nil, err
	}
	if j.Attempts > 0 { // only workers write logs
		log, err := r.service.JobLog(r.Context(), r.caller, r.PathValue("id"), "")
		if err != nil {
			return nil, err
		}
		if d.Log = log.Lines; len(d.Log) > 0 {
			d.LogEnd = d.Log[len(d.Log)-1].At
		}
	}
	switch j.State {
	case "ready", "scheduled", "retrying", "blocked", "dead":
		d.Editable = true
		d.BodyEditable = cut == 0 && len(j.BodyBase64) == 0
		d.Edit = editForm(&j)
	}
	d.Graph, err = r.linkGraph(&j)
	return d, err
}

// editForm returns the initial values of the form that edits a job.
func editForm(j *service.Job) map[string]string {
	values := map[string]string{
		"queue": j.Queue, "type": j.Type, "priority": strconv.Itoa(int(j.Priority)), "tags": strings.Join(j.Tags, ", "),
		"max_fails": strconv.FormatUint(uint64(j.MaxFails), 10),
	}
	if j.BodyBytes <= shownBody {
		values["body"] = bodyText(j)
	}
	if j.RunAt != nil {
		values["run_at"] = formTime(*j.RunAt)
	}
	return values
}

// jobActions returns the buttons for a job in a state, most likely first.
func jobActions(state string) []choice {
	retry := choice{Value: string(service.ActionRetry), Label: "Run now", Chosen: true}
	kill := choice{Value: string(service.ActionKill), Label: "Kill"}
	remove := choice{Value: string(service.ActionDelete), Label: "Delete", Dangerous: true}
	cancel := choice{Value: string(service.ActionCancel), Label: "Cancel", Dangerous: true}
	switch state {
	case "scheduled", "blocked", "retrying":
		return []choice{retry, kill, cancel}
	case "leased":
		return []choice{{Value: string(actionStop), Label: "Stop", Chosen: true}, kill, cancel}
	case "ready":
		return []choice{kill, cancel}
	case "dead":
		retry.Label = "Run again"
		return []choice{retry, remove}
	case "done":
		return []choice{{Value: string(service.ActionRerun), Label: "Run again", Chosen: true}, remove}
	}
	return nil
}

// jobConsequences has the words for confirming changes of a job that cannot be undone.
var jobConsequences = map[service.JobAction]bulkWord{
	service.ActionKill: {
		verb:        "Kill",
		consequence: "It moves to the dead set, from where it can be run again. A worker that has it is refused when it finishes.",
	},
	actionStop: {
		verb:        "Stop",
		consequence: "Its worker is asked to stop. The job then ends as cancelled, unless the worker completes it.",
	},
	service.ActionCancel: {verb: "Cancel", consequence: "It is removed unless it has ended. This cannot be undone."},
	service.ActionDelete: {
		verb:        "Delete",
		consequence: "It is removed in 30 seconds, whatever its state; until then this can be undone. If it changes meanwhile, it stays.",
	},
}

// changeJob handles the forms of a job's page.
func changeJob(r *request) (*view, error) {
	id := r.named("id")
	at := "jobs/" + pathEscape(id)
	do := r.PostFormValue("do")
	if do == "compare" {
		return r.compareJob()
	}
	if do == "edit" || do == "edit-run" {
		return r.editJob(id, at, do == "edit-run")
	}
	if service.JobAction(do) == service.ActionRerun {
		copied, err := r.service.Rerun(r.Context(), r.caller, id)
		if err != nil {
			return nil, err
		}
		return r.back("jobs/"+pathEscape(copied), "This is the job that was submitted again.")
	}
	if c, ok := jobConsequences[service.JobAction(do)]; ok {
		title, button := c.verb+" the job "+r.jobTitle(id)+"?", c.verb+" the job"
		v := r.ask(question{Title: title, Consequence: c.consequence, Button: button, Path: at, Back: at})
		if v != nil {
			return v, nil
		}
	}
	if service.JobAction(do) == service.ActionDelete {
		return r.startBulk(service.Action{Action: service.ActionDelete, Delay: undoFor},
			service.Selection{Names: []string{id}}, at)
	}
	switch begun, err := r.actOnJob(id, actionOf(do)); {
	case err != nil:
		return nil, err
	case begun:
		return r.back(at, "The change has begun.")
	}
	switch service.JobAction(do) { //nolint:exhaustive // the others stay on the page
	case service.ActionCancel:
		return r.back("jobs", "The job is removed.")
	case actionStop:
		if j, err := r.service.Job(r.Context(), r.caller, id); err == nil && j.CancelAt != nil {
			return r.back(at, "Its worker is asked to stop.")
		}
		return r.back("jobs", "The job is removed.") // the run has ended in the meantime
	case service.ActionKill:
		return r.back(at, "The job is in the dead set.")
	}
	return r.back(at, "The job is ready.")
}

// actOnJob changes one job. A change that can be undone is an operation. begun says that it is still under way.
func (r *request) actOnJob(id string, a service.Action) (begun bool, err error) {
	if a.CanUndo(1) {
		op, err := r.service.StartAction(r.Context(), r.caller, a, service.Selection{Names: []string{id}})
		if err == nil {
			op, err = r.service.WaitOperation(r.Context(), r.caller, op.ID, bulkWait)
		}
		switch {
		case err != nil:
			return false, err
		case op.FinishedAt == nil:
			return true, nil
		case op.UndoUntil != nil:
			r.caller.Made.Add(op.ID)
			return false, nil
		case op.Changed > 0:
			return false, nil
		}
	}
	return false, r.service.Act(r.Context(), r.caller, id, a, nil) // also to learn why it was not changed
}

// jobTitle names a job by its type and id.
func (r *request) jobTitle(id string) string {
	j, err := r.service.Job(r.Context(), r.caller, id)
	if err != nil {
		return id
	}
	return j.Type + " " + j.ID
}

// editJob saves the form that edits a job. It shows errors in the form, which keeps its values.
func (r *request) editJob(id, at string, run bool) (*view, error) {
	update, epoch, err := r.jobUpdate(id)
	note := "The job is changed."
	if err == nil {
		var j service.Job
		j, err = r.service.Update(r.Context(), r.caller, id, update, &epoch)
		if err == nil && run && j.State != "ready" {
			err = r.service.Act(r.Context(), r.caller, id, service.Action{Action: service.ActionRetry}, nil)
			note = "The job is changed and ready."
		}
	}
	var refused *service.Error
	if err == nil {
		return r.back(at, note)
	}
	if !errors.As(err, &refused) || refused.Code == service.CodeJobNotFound {
		return nil, err
	}
	d, gone := r.job()
	if gone != nil {
		return nil, gone
	}
	d.AskText = asksForText(err)
	d.Problem, d.Epoch = refused.Detail, r.PostFormValue("epoch")
	if refused.Code == service.CodeConflict {
		d.Problem = "The job has changed since this form was opened. Look at it again: " + refused.Detail + "."
	}
	d.retype(r.PostForm)
	return &view{
		page: "job", title: d.Job.Type + " " + d.Job.ID, queue: d.Job.Queue, nav: "jobs", data: d, still: true,
		status: r.console.options.Port.Status(err),
	}, nil
}

// retype fills the form that edits a job with the submitted values.
func (d *jobData) retype(form url.Values) {
	for name := range d.Edit {
		if form.Has(name) { // also emptied fields
			d.Edit[name] = form.Get(name)
		}
	}
}

// compareJob shows the differences between the body in the form and the job's body. It saves nothing.
func (r *request) compareJob() (*view, error) {
	d, err := r.job()
	if err != nil {
		return nil, err
	}
	before := d.Edit["body"]
	d.retype(r.PostForm)
	d.Epoch, d.Compared = r.PostFormValue("epoch"), true
	d.Diff = diffLines(before, strings.ReplaceAll(d.Edit["body"], "\r\n", "\n"))
	return &view{
		page: "job", title: d.Job.Type + " " + d.Job.ID, queue: d.Job.Queue, nav: "jobs", data: d, still: true,
	}, nil
}

// jobUpdate reads the form that edits a job. It returns only changed values.
func (r *request) jobUpdate(id string) (u service.JobUpdate, epoch uint32, err error) {
	form := r.PostForm
	n, err := strconv.ParseUint(form.Get("epoch"), 10, 32)
	if err != nil {
		return u, 0, invalid("epoch", "the form is incomplete: load the page again")
	}
	epoch = uint32(n)
	j, err := r.service.Job(r.Context(), r.caller, id)
	if err != nil {
		return u, epoch, err
	}
	u, err = r.updateOf(form, editForm(&j), len(j.Args) > 0)
	return u, epoch, err
}

// updateOf reads the values of the form that edits a job and that differ from what they were.
func (r *request) updateOf(form url.Values, was map[string]string, wasArgs bool) (u service.JobUpdate, err error) {
	changed := func(name string) (string, bool) {
		value := strings.TrimSpace(strings.ReplaceAll(form.Get(name), "\r\n", "\n"))
		return value, form.Has(name) && value != strings.TrimSpace(was[name])
	}
	if v, ok := changed("queue"); ok {
		u.Queue = &v
	}
	if v, ok := changed("type"); ok {
		u.Type = &v
	}
	if v, ok := changed("priority"); ok {
		p, err := parsePriority(cmp.Or(v, "0"))
		if err != nil {
			return u, err
		}
		u.Priority = &p
	}
	if v, ok := changed("tags"); ok {
		tags := commaList(v)
		u.Tags = &tags
	}
	if v, ok := changed("max_fails"); ok {
		fails, err := strconv.ParseUint(v, 10, 32)
		if err != nil {
			return u, invalid("max_fails", fmt.Sprintf("%q is not a number of failures", v))
		}
		limit := uint32(fails)
		u.MaxFails = &limit
	}
	if v, ok := changed("run_at"); ok && v != "" {
		at, err := r.parseTime(v)
		if err != nil {
			return u, err
		}
		u.RunAt = &at
	}
	if _, ok := changed("body"); ok {
		u.Args, u.Body, err = typedBody(form, wasArgs)
	}
	return u, err
}
