package console

import (
	"slices"
	"strings"
	"time"

	"broker/access"
	"broker/operate/service"
)

// moment is an entry of a timeline.
type moment struct {
	At           *time.Time
	What, Detail string
	Dot          string // the state whose colour it has
}

// momentDots maps the kinds of entries to the states whose colours they have.
var momentDots = map[string]string{
	"submitted": "scheduled", "ready": "ready", "leased": "leased", "progress": "leased", "done": "done",
	"failed":   "retrying",
	"retrying": "retrying", "dead": "dead", "cancelled": "dead", "expired": "dead", "lease_expired": "retrying",
	"released": "ready",
	"moved":    "ready", "changed": "blocked", "cancel_requested": "dead",
}

// anonymous is the name of callers without credentials.
var anonymous = (&service.Caller{Principal: access.Everyone}).Name()

// timeline returns the history of a job, oldest first: the stored timeline, or if there is none, entries derived from
// the job's fields. Future entries are at the end.
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
	if j.Deadline != nil {
		m := moment{j.Deadline, "Deadline", "", "scheduled"}
		if j.Late {
			m.Detail, m.Dot = "missed", "dead"
		}
		all = insertMoment(all, m)
	}
	return all
}

// insertMoment adds a moment in front of the first one that is later.
func insertMoment(all []moment, m moment) []moment {
	i := slices.IndexFunc(all, func(o moment) bool { return o.At != nil && o.At.After(*m.At) })
	if i < 0 {
		i = len(all)
	}
	return slices.Insert(all, i, m)
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
	if e.Worker != "" && e.Worker != anonymous { // anonymous callers have no useful name
		words = append(words, "by "+e.Worker)
	}
	if e.Protocol != "" && e.Kind != "dead" && e.Kind != "retrying" { // these kinds follow from the entry before
		words = append(words, "over "+e.Protocol)
	}
	what := strings.ReplaceAll(e.Kind, "_", " ")
	return moment{e.At, strings.ToUpper(what[:1]) + what[1:], strings.Join(words, ", "), momentDots[e.Kind]}
}

// momentsOf derives timeline entries from the fields of a job.
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
	slices.SortStableFunc(all, func(a, b moment) int { return a.At.Compare(*b.At) })
	return all
}
