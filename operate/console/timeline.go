package console

import (
	"sort"
	"strings"
	"time"

	"broker/frontends/access"
	"broker/operate/service"
)

// moment is an entry of a timeline.
type moment struct {
	At           *time.Time
	What, Detail string
	Dot          string // the state whose colour it has
}

// momentDots are the states whose colours the kinds of entries have.
var momentDots = map[string]string{
	"submitted": "scheduled", "ready": "ready", "leased": "leased", "progress": "leased", "done": "done", "failed": "retrying",
	"retrying": "retrying", "dead": "dead", "cancelled": "dead", "expired": "dead", "lease_expired": "retrying", "released": "ready",
	"moved": "ready", "changed": "blocked", "noted": "blocked", "cancel_requested": "dead",
}

// anonymous is the name of callers that did not say who they are.
var anonymous = (&service.Caller{Principal: access.Everyone}).Name()

// timeline is what happened to a job, oldest first: what the broker has kept of it, else what its fields say. What is still
// to come stands at the end.
func timeline(j *service.Job) []moment {
	all := momentsOf(j)
	if len(j.Timeline) > 0 {
		all = nil
		last := uint32(0)
		for i, e := range j.Timeline {
			if i > 0 && e.Number > last+1 {
				all = append(all, moment{What: "…", Detail: plural(int(e.Number-last-1), "entry") + " not kept"})
			}
			last = e.Number
			all = append(all, momentOf(&e))
		}
	}
	if (j.State == "retrying" || j.State == "scheduled") && j.RunAt != nil {
		all = append(all, moment{j.RunAt, "Due", "", j.State})
	}
	return all
}

func momentOf(e *service.TimelineEntry) moment {
	var words []string
	for _, w := range []string{e.Detail, e.Text} {
		if w == "by order" {
			w = "on request"
		}
		if w != "" {
			words = append(words, w)
		}
	}
	if e.Queue != "" {
		words = append(words, "into "+e.Queue)
	}
	if e.Worker != "" && e.Worker != anonymous { // nobody in particular
		words = append(words, "by "+e.Worker)
	}
	if e.Protocol != "" && e.Kind != "dead" && e.Kind != "retrying" { // these follow from what was before
		words = append(words, "over "+e.Protocol)
	}
	what := strings.ReplaceAll(e.Kind, "_", " ")
	return moment{e.At, strings.ToUpper(what[:1]) + what[1:], strings.Join(words, ", "), momentDots[e.Kind]}
}

// momentsOf is what the fields of a job say of its life.
func momentsOf(j *service.Job) []moment {
	var all []moment
	add := func(at *time.Time, dot, what, detail string) {
		if at != nil && !at.IsZero() {
			all = append(all, moment{at, what, detail, dot})
		}
	}
	add(j.CreatedAt, "scheduled", "Submitted", "over "+j.Origin+", into "+j.Queue)
	if j.ReadyAt != nil && j.CreatedAt != nil && j.ReadyAt.Sub(*j.CreatedAt) > time.Millisecond && j.State != "done" {
		add(j.ReadyAt, "ready", "Ready", "")
	}
	if f := j.Failure; f != nil && f.FailedAt != nil {
		add(f.FailedAt, "retrying", "Failed for the first time", f.Type)
	}
	by := ""
	if j.Worker != "" {
		by = "by " + j.Worker
	}
	add(j.LeasedAt, "leased", "Leased", by)
	if p := j.Progress; p != nil && p.Den > 0 {
		add(p.UpdatedAt, "leased", "Progress", num(percent(p.Num, p.Den))+" %")
	}
	add(j.DiedAt, "dead", "Died", "")
	if j.State == "done" {
		add(j.ChangedAt, "done", "Ended", "")
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].At.Before(*all[j].At) })
	return all
}
