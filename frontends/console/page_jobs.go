package console

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"broker/core"
	"broker/frontends/service"
)

// groupLook is how many jobs are looked at to group failures.
const groupLook = 1000

type jobsData struct {
	Heading, Path, Nav string
	Fixed              bool // the state belongs to the page
	States             []string
	StateChips, Chips  []choice
	Queue              string
	Jobs               []service.Job
	Next               any
	Actions            []choice
	Groups             []jobGroup
	GroupsSeen         int
	GroupsExact        bool
}

type jobGroup struct {
	Error, Type, Message string
	N                    int
}

func jobsPage(r *request) (*view, error) {
	return r.jobList("jobs", "Jobs", "jobs", r.query["state"], false)
}

// stateJobsPage is the page of the jobs in one state. Failed ones are grouped by error.
func stateJobsPage(state string) handler {
	path := state
	if state == "leased" {
		path = "running"
	}
	title := strings.ToUpper(path[:1]) + path[1:]
	return func(r *request) (*view, error) {
		return r.jobList(path, title, path, []string{state}, true)
	}
}

// jobList shows the jobs that the query chooses.
func (r *request) jobList(path, heading, nav string, states []string, fixed bool) (*view, error) {
	states = slices.DeleteFunc(slices.Clone(states), func(s string) bool { return s == "" })
	queue := r.query.Get("queue")
	filter := service.JobFilter{States: states}
	if queue != "" {
		filter.Queues = []string{queue}
	}
	list, err := r.service.Jobs(r.Context(), r.caller, filter, service.JobPage{Limit: pageRows, Cursor: r.query.Get("cursor")})
	if err != nil {
		return nil, err
	}
	d := &jobsData{
		Heading: heading, Path: path, Nav: nav, Fixed: fixed, States: states, Queue: queue, Jobs: list.Jobs, Actions: bulkActions(nav),
	}
	if list.Cursor != "" {
		if d.Next, err = with(r.query, "cursor", list.Cursor); err != nil {
			return nil, err
		}
	}
	if err := r.chips(d); err != nil {
		return nil, err
	}
	if fixed && (nav == "dead" || nav == "retrying") {
		failed, err := r.service.Jobs(r.Context(), r.caller, filter, service.JobPage{Limit: groupLook})
		if err != nil {
			return nil, err
		}
		d.Groups, d.GroupsSeen, d.GroupsExact = groupFailures(failed.Jobs), len(failed.Jobs), failed.Cursor == ""
	}
	return &view{page: "jobs", title: heading, nav: nav, data: d}, nil
}

// chips are the links that change the states, and the one that takes the queue's filter away.
func (r *request) chips(d *jobsData) error {
	here := maps.Clone(r.query)
	here.Del("cursor")
	add := func(list *[]choice, label string, chosen bool, pairs ...string) error {
		link, err := with(here, pairs...)
		*list = append(*list, choice{Label: label, URL: link, Chosen: chosen})
		return err
	}
	if err := add(&d.StateChips, "all", len(d.States) == 0, "state", ""); err != nil {
		return err
	}
	for _, state := range core.States {
		name := state.String()
		if err := add(&d.StateChips, name, slices.Contains(d.States, name), "state", name); err != nil {
			return err
		}
	}
	if d.Queue != "" {
		return add(&d.Chips, "queue "+short(40, d.Queue), false, "queue", "")
	}
	return nil
}

// groupFailures counts jobs by error class and type, the largest groups first.
func groupFailures(jobs []service.Job) []jobGroup {
	type key struct{ class, typ string }
	byKey := map[key]*jobGroup{}
	for i := range jobs {
		j := &jobs[i]
		k, message := key{typ: j.Type}, ""
		if j.Failure != nil {
			k.class, message = j.Failure.Type, j.Failure.Message
		}
		if byKey[k] == nil {
			byKey[k] = &jobGroup{Error: k.class, Type: k.typ, Message: message}
		}
		byKey[k].N++
	}
	groups := make([]jobGroup, 0, len(byKey))
	for _, g := range byKey {
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b jobGroup) int {
		return cmp.Or(cmp.Compare(b.N, a.N), strings.Compare(a.Error, b.Error), strings.Compare(a.Type, b.Type))
	})
	return groups[:min(len(groups), 20)]
}

// bulkActions are the changes that a list offers, the likeliest first.
func bulkActions(nav string) []choice {
	retry := choice{Value: string(service.ActionRetry), Label: "Run now"}
	kill := choice{Value: string(service.ActionKill), Label: "Move to the dead set"}
	remove := choice{Value: string(service.ActionDelete), Label: "Delete"}
	switch nav {
	case "dead":
		return []choice{retry, remove}
	case "running":
		return []choice{kill, remove}
	}
	return []choice{retry, kill, remove}
}

// changeJobs changes the selected jobs, one by one. Those that the action does not apply to any more are counted.
func changeJobs(r *request) (*view, error) {
	back := cmp.Or(r.PostFormValue("back"), "jobs")
	if strings.Contains(back, "//") || strings.HasPrefix(back, "/") {
		back = "jobs" // only pages of this console
	}
	ids := r.PostForm["id"]
	if len(ids) == 0 {
		return r.back(back, "No job was selected.")
	}
	action := service.JobAction(r.PostFormValue("action"))
	changed, gone := 0, 0
	for _, id := range ids {
		switch err := r.service.Act(r.Context(), r.caller, id, service.Action{Action: action}, nil); {
		case err == nil:
			changed++
		case service.IsCode(err, service.CodeJobNotFound), service.IsCode(err, service.CodeState), service.IsCode(err, service.CodeFinished):
			gone++
		default:
			return nil, err
		}
	}
	note := plural(changed, "job") + " changed."
	if gone > 0 {
		note += " " + plural(gone, "job") + " had changed meanwhile and stayed as they were."
	}
	return r.back(back, note)
}

// number reads a number from a form; an empty field is zero.
func number(form url.Values, name string) (int, error) {
	text := strings.TrimSpace(form.Get(name))
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, &service.Error{Code: service.CodeInvalid, Field: name, Detail: strconv.Quote(text) + " is not a number of 0 or more"}
	}
	return n, nil
}
