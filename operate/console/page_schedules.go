package console

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"broker/operate/service"
)

type schedulesData struct {
	Schedules []service.Schedule
	Form      map[string]string
	Editing   bool // the form changes an existing schedule
	Open      bool // the form is open
	Problem   string
	Runs      []string // the next runs of the cron expression in the form, or what is wrong with it
	AskText   bool     // the form offers to save a body that is not JSON
}

// scheduleFields are the fields of the form.
var scheduleFields = []string{
	"name", "cron", "every", "zone", "queue", "type", "priority", "tags", "body", "backlog", "missed", "revision",
}

func schedulesPage(r *request) (*view, error) {
	list, err := r.service.Schedules(r.Context(), r.caller)
	if err != nil {
		return nil, err
	}
	d := &schedulesData{Schedules: list, Form: map[string]string{}}
	if name := r.query.Get("edit"); name != "" {
		i := slices.IndexFunc(list, func(s service.Schedule) bool { return s.Name == name })
		if i < 0 {
			return nil, &service.Error{
				Code: service.CodeScheduleNotFound, Detail: "there is no schedule " + name + " any more",
			}
		}
		d.Form, d.Editing, d.Open = scheduleForm(&list[i]), true, true
		d.Runs = r.nextRuns(d.Form["cron"], d.Form["zone"])
	}
	return &view{page: "schedules", title: "Schedules", nav: "schedules", data: d, still: d.Open}, nil
}

// scheduleForm returns the initial values of the form that changes a schedule.
func scheduleForm(s *service.Schedule) map[string]string {
	j := service.Job{Args: s.Args, Body: s.Body}
	form := map[string]string{
		"name": s.Name, "cron": s.Cron, "zone": s.Zone, "queue": s.Queue, "type": s.Type,
		"priority": strconv.Itoa(int(s.Priority)),
		"tags":     strings.Join(s.Tags, ", "), "body": bodyText(&j), "missed": s.Missed,
		"revision": strconv.FormatUint(s.Revision, 10),
	}
	if s.EveryS > 0 {
		form["every"] = strconv.FormatFloat(s.EveryS, 'f', -1, 64)
	}
	if s.Backlog > 0 {
		form["backlog"] = strconv.Itoa(s.Backlog)
	}
	return form
}

// changeSchedules handles the forms of the page.
func changeSchedules(r *request) (*view, error) {
	name := strings.TrimSpace(r.PostFormValue("name"))
	switch do := r.PostFormValue("do"); do {
	case "create", "change":
		return r.putSchedule(name, do == "create")
	case "runs":
		v, err := schedulesPage(r)
		if err != nil {
			return nil, err
		}
		d := v.data.(*schedulesData)
		d.Open, d.Editing, v.still = true, r.PostFormValue("revision") != "", true
		d.retype(r)
		return v, nil
	case "pause", "resume":
		if err := r.service.PauseSchedule(r.Context(), r.caller, name, do == "pause"); err != nil {
			return nil, err
		}
		return r.back("schedules", "The schedule "+name+" is "+do+"d.")
	case "run":
		job, err := r.service.RunSchedule(r.Context(), r.caller, name)
		if err != nil {
			return nil, err
		}
		return r.back("schedules", "A job of "+name+" is submitted: "+jobName(job)+".")
	case "remove":
		if v := r.ask(question{
			Title: "Remove the schedule " + name + "?", Button: "Remove the schedule", Path: "schedules",
			Back:        "schedules",
			Consequence: "It submits no more jobs. The jobs that it has submitted stay. This cannot be undone.",
		}); v != nil {
			return v, nil
		}
		if err := r.service.RemoveSchedule(r.Context(), r.caller, name); err != nil {
			return nil, err
		}
		return r.back("schedules", "The schedule "+name+" is removed; its jobs stay.")
	}
	return nil, invalid("do", "choose what to do with the schedule")
}

// putSchedule creates or changes a schedule. It shows errors above the form, which keeps its values.
func (r *request) putSchedule(name string, create bool) (*view, error) {
	change, err := scheduleChange(r, name)
	if err == nil {
		_, err = r.service.PutSchedule(r.Context(), r.caller, change, create)
	}
	if err == nil {
		done := "changed"
		if create {
			done = "created"
		}
		return r.back("schedules", "The schedule "+name+" is "+done+".")
	}
	return again(r, err, schedulesPage, func(d *schedulesData, reason string) {
		d.Problem, d.Open, d.Editing, d.AskText = reason, true, !create, asksForText(err)
		d.retype(r)
	})
}

// retype fills the form with the submitted values.
func (d *schedulesData) retype(r *request) {
	for _, field := range scheduleFields {
		d.Form[field] = r.PostFormValue(field)
	}
	d.Runs = r.nextRuns(d.Form["cron"], d.Form["zone"])
}

// shownRuns is the number of runs that a form predicts.
const shownRuns = 5

// nextRuns lists the next runs of a cron expression, in its time zone, or says what is wrong with it.
func (r *request) nextRuns(cron, zone string) (lines []string) {
	cron, zone = strings.TrimSpace(cron), strings.TrimSpace(zone)
	if cron == "" {
		return nil
	}
	runs, err := r.service.NextRuns(cron, zone, shownRuns)
	var refused *service.Error
	if errors.As(err, &refused) {
		return []string{refused.Detail}
	}
	for _, at := range runs {
		lines = append(lines, at.Format("Mon 2006-01-02 15:04:05 MST"))
	}
	return lines
}

func scheduleChange(r *request, name string) (service.ScheduleChange, error) {
	form := r.PostForm
	sub, err := r.submission(r.PostForm)
	sub.DelayS, sub.UniqueKey = 0, ""
	c := service.ScheduleChange{
		Name: name, Cron: strings.TrimSpace(form.Get("cron")), Zone: strings.TrimSpace(form.Get("zone")),
		Missed: form.Get("missed"), Job: sub,
	}
	if err != nil {
		return c, err
	}
	if text := strings.TrimSpace(form.Get("every")); text != "" {
		if c.EveryS, err = strconv.ParseFloat(text, 64); err != nil {
			return c, invalid("every", strconv.Quote(text)+" is not a number of seconds")
		}
	}
	if text := form.Get("revision"); text != "" {
		if c.Revision, err = strconv.ParseUint(text, 10, 64); err != nil {
			return c, invalid("revision", "the form is incomplete: load the page again")
		}
	}
	c.Backlog, err = number(form, "backlog")
	return c, err
}
