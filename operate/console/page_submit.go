package console

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"broker/access"
	"broker/core"
	"broker/operate/service"
)

// submitWait is how long the page waits for a result.
const submitWait = 20 * time.Second

type submitData struct {
	ID                  string // of the finished job
	Values              map[string]string
	Problem             string
	AskText             bool // the form offers to save a body that is not JSON
	Outcome             *service.Outcome
	Result, FailureText string
}

var submitFields = []string{
	"queue", "type", "priority", "body", "run_at", "retries", "unique_key", "on_duplicate", "unique_until",
	"unique_for", "cost", "tags",
}

func submitPage(r *request) (*view, error) {
	if !r.caller.Current().MaySome(access.Produce) {
		return nil, &service.Error{
			Code: service.CodeForbidden, Detail: "principal " + r.caller.Name() + " lacks the role produce",
		}
	}
	d := &submitData{Values: map[string]string{}}
	for _, name := range submitFields {
		d.Values[name] = r.query.Get(name)
	}
	return &view{page: "submit", title: "Submit a job", nav: "submit", data: d, still: true}, nil
}

// submitJob submits the job in the form. It shows errors above the form, which keeps its values.
func submitJob(r *request) (*view, error) {
	d := &submitData{Values: map[string]string{}}
	for _, name := range submitFields {
		d.Values[name] = r.PostFormValue(name)
	}
	v := &view{page: "submit", title: "Submit a job", nav: "submit", data: d, still: true}
	sub, err := r.submission(r.PostForm)
	var jobs []service.Job
	wait := time.Duration(0)
	if err == nil {
		if r.PostFormValue("do") == "wait" {
			wait = submitWait
		}
		jobs, err = r.service.Submit(r.Context(), r.caller, []service.Submission{sub},
			service.SubmitOptions{Wait: wait})
	}
	if err != nil {
		e := r.console.errorView(r.Request, err)
		refused, _ := e.data.(*service.Error)
		d.Problem, v.status, d.AskText = refused.Detail, e.status, asksForText(err)
		return v, nil
	}
	job := jobs[0]
	if !rightsOf(r.caller, "").may(access.Read, job.Queue) {
		return r.back("submit", "The job "+job.ID+" is submitted.")
	}
	if wait == 0 {
		return r.back("jobs/"+job.ID, submittedNote(&sub))
	}
	if job.Outcome == nil {
		return r.back("jobs/"+job.ID, "The job has not ended within "+span(submitWait)+"; this is how it is now.")
	}
	d.ID, d.Outcome, d.Result = job.ID, job.Outcome, resultText(job.Outcome)
	if f := job.Outcome.Failure; f != nil {
		d.FailureText = strings.TrimPrefix(f.Type+": "+f.Message, ": ")
	} else {
		d.FailureText = job.Outcome.Cause
	}
	return v, nil
}

// submittedNote describes the submitted or existing job.
func submittedNote(sub *service.Submission) string {
	switch sub.OnDuplicate {
	case "coalesce":
		return "This is the job with the key: it is submitted, or was before."
	case "replace":
		return "This is the job with the key, as it was typed."
	}
	return "The job is submitted."
}

// submission reads the job in a form.
func (r *request) submission(form url.Values) (service.Submission, error) {
	sub := service.Submission{
		Queue: strings.TrimSpace(form.Get("queue")), Type: strings.TrimSpace(form.Get("type")),
		UniqueKey: form.Get("unique_key"), OnDuplicate: form.Get("on_duplicate"),
		UniqueUntil: form.Get("unique_until"), Tags: commaList(form.Get("tags")),
	}
	var err error
	if sub.Args, sub.Body, err = typedBody(form, false); err != nil {
		return sub, err
	}
	if text := strings.TrimSpace(form.Get("priority")); text != "" {
		n, err := strconv.ParseInt(text, 10, 33)
		if err != nil {
			return sub, invalid("priority", strconv.Quote(text)+" is not a priority")
		}
		sub.Priority = n
	}
	if text := form.Get("run_at"); text != "" {
		at, err := r.parseTime(text)
		if err != nil {
			return sub, err
		}
		sub.RunAt = at
	}
	held, err := number(form, "unique_for")
	if err != nil {
		return sub, err
	}
	cost, err := number(form, "cost")
	if err != nil {
		return sub, err
	}
	sub.UniqueForS, sub.Cost = float64(held), uint32(min(cost, core.MaxCost+1))
	if strings.TrimSpace(form.Get("retries")) != "" {
		n, err := number(form, "retries")
		if err != nil {
			return sub, err
		}
		fails := uint32(n) + 1 // the first failure is not a retry
		sub.MaxFails = &fails
	}
	return sub, nil
}

// number parses a number of a form; an empty field is zero.
func number(form url.Values, name string) (int, error) {
	text := strings.TrimSpace(form.Get(name))
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, invalid(name, strconv.Quote(text)+" is not a number of 0 or more")
	}
	return n, nil
}
