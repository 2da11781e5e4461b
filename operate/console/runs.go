package console

import (
	"cmp"
	"slices"
	"time"

	"broker/operate/service"
)

// lateRun is the delay at which a run counts as late.
const lateRun = 5 * time.Second

// stripRuns limits the number of runs in the list of schedules.
const stripRuns = 12

// runMark is a run of a schedule in a strip of marks.
type runMark struct {
	service.ScheduleRun
	Mark    string // one character
	Word    string // its outcome
	Class   string // class of the style sheet
	Late    string // delay; empty: on time
	Ran     string // run time
	Summary string // the text of the tooltip
}

// runMarks returns the last runs of a schedule, newest last.
func runMarks(s service.Schedule, limit int) (marks []runMark) {
	for _, r := range s.Recent[max(0, len(s.Recent)-limit):] {
		marks = append(marks, markOf(r))
	}
	return marks
}

// markOf returns the mark of a run.
func markOf(r service.ScheduleRun) runMark {
	m := runMark{ScheduleRun: r, Ran: between(r.StartedAt, r.EndedAt)}
	switch word := cmp.Or(r.Outcome, r.Result); word {
	case "done":
		m.Mark, m.Class, m.Word = "✓", "done", "done"
	case "failed", "dead":
		m.Mark, m.Class, m.Word = "✗", "dead", word
	case "submitted":
		m.Mark, m.Class, m.Word = "…", "leased", "not ended yet"
	case "missed":
		m.Mark, m.Class, m.Word = "–", "missed", "missed: the broker was not running"
	case "backlogged":
		m.Mark, m.Class, m.Word = "–", "missed", "left out: too many of its jobs wait"
	case "refused":
		m.Mark, m.Class, m.Word = "!", "dead", "the job was refused"
	default: // cancelled, expired
		m.Mark, m.Class, m.Word = "–", "missed", word
	}
	if late := r.Late(); late >= lateRun {
		m.Late = span(late)
	}
	if r.DueAt == nil {
		m.Summary = "run by hand at " + clockTime(r.At)
	} else {
		m.Summary = clockTime(r.DueAt)
	}
	m.Summary += " UTC: " + m.Word
	if m.Ran != "" {
		m.Summary += " after " + m.Ran
	}
	if m.Late != "" {
		m.Summary += ", " + m.Late + " late"
	}
	return m
}

type scheduleData struct {
	Schedule service.Schedule
	Runs     []runMark // newest first
	Strip    []runMark
	Body     string
}

// schedulePage shows a schedule with its last runs.
func schedulePage(r *request) (*view, error) {
	s, err := r.service.Schedule(r.Context(), r.caller, r.named("name"))
	if err != nil {
		return nil, err
	}
	d := &scheduleData{
		Schedule: s, Strip: runMarks(s, len(s.Recent)), Body: bodyText(&service.Job{Args: s.Args, Body: s.Body}),
	}
	d.Runs = slices.Clone(d.Strip)
	slices.Reverse(d.Runs)
	return &view{page: "schedule", title: s.Name, queue: s.Queue, nav: "schedules", data: d}, nil
}
