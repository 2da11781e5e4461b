package console

import (
	"cmp"
	"html/template"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"broker/core"
	"broker/core/schema"
	"broker/operate/service"
)

type limitsData struct {
	Limits   []service.Limit
	Next     template.URL      // empty on the last page
	Form     map[string]string // selectors
	Fields   []schema.Field
	Open     bool
	Problem  string
	Tenant   string        // what the key of the form has now
	Keys     []service.Job // holders of unique keys, youngest first
	KeyCount string
	NextKeys template.URL
}

// selectors are the fields that say for which jobs a limit is.
var selectors = []string{"queue", "queues", "types", "scope", "name"}

// keyRows limits the number of listed holders of unique keys.
const keyRows = 20

func limitsPage(r *request) (*view, error) {
	limits, cursor, err := r.service.LimitPage(r.Context(), r.caller, pageRows, r.query.Get("cursor"))
	if err != nil {
		return nil, err
	}
	if r.query.Get("cursor") == "" {
		shared, err := r.service.SharedLimits(r.Context(), r.caller, "")
		if err != nil {
			return nil, err
		}
		limits = append(shared, limits...)
	}
	for i := range limits {
		limits[i].Uses = inUse(limits[i].Uses)
	}
	d := &limitsData{
		Limits: limits, Form: map[string]string{"scope": "queue"}, Fields: limitFields(nil),
		Next: r.nextPage("limits", cursor),
	}
	if r.query.Has("scope") { // a link to the form
		d.Open = true
		for _, field := range selectors {
			d.Form[field] = r.query.Get(field)
		}
		typedFields(d.Fields, r.query)
		if d.Tenant, err = r.tenantText(d.Form["queue"], d.Form["scope"], d.Form["name"]); err != nil {
			return nil, err
		}
	}
	holders, err := r.service.Jobs(r.Context(), r.caller, service.JobFilter{HoldsKey: true},
		service.JobPage{Sort: "-created", Limit: keyRows, Cursor: r.query.Get("keys"), Count: true})
	if err != nil {
		return nil, err
	}
	d.Keys, d.KeyCount = holders.Jobs, num(holders.Count)
	if !holders.CountExact {
		d.KeyCount += " or more"
	}
	if holders.Cursor != "" {
		d.NextKeys = joinURL("limits", with(r.query, "keys", holders.Cursor)+"#keys")
	}
	return &view{page: "limits", title: "Limits", nav: "limits", data: d}, nil
}

// tenantText says how many jobs a limit of a key would be for; empty: it is not for one key from a tag.
func (r *request) tenantText(queue, scope, key string) (string, error) {
	if queue == "" || scope != "key" || key == "" {
		return "", nil
	}
	q, err := r.service.Queue(r.Context(), r.caller, queue)
	if err != nil || q.Sharing == nil || q.Sharing.KeyTag == "" {
		return "", ignoreRefusal(err)
	}
	count := func(state string) (string, error) {
		list, err := r.service.Jobs(r.Context(), r.caller, service.JobFilter{
			Queues: []string{queue}, Tags: []string{q.Sharing.KeyTag + ":" + key}, States: []string{state},
		}, service.JobPage{Limit: 1, Brief: true, Count: true})
		if list.CountExact {
			return num(list.Count), err
		}
		return num(list.Count) + " or more", err
	}
	running, err := count("leased")
	if err != nil {
		return "", ignoreRefusal(err)
	}
	ready, err := count("ready")
	return "The key " + key + " has " + running + " running and " + ready + " ready jobs. Running jobs go on; those " +
		"beyond the limit wait.", ignoreRefusal(err)
}

// inUse returns the types or keys that count against a limit, busiest first.
func inUse(uses []service.LimitUse) []service.LimitUse {
	uses = slices.DeleteFunc(uses, func(u service.LimitUse) bool { return u.Taken == 0 && u.Ready == 0 })
	slices.SortStableFunc(uses, func(a, b service.LimitUse) int {
		return cmp.Or(cmp.Compare(b.Taken, a.Taken), cmp.Compare(b.Ready, a.Ready))
	})
	return uses
}

// changeLimits sets or removes a limit. It shows errors above the form, which keeps its values.
func changeLimits(r *request) (*view, error) {
	l := service.LimitSpec{
		Queue: strings.TrimSpace(r.PostFormValue("queue")), Scope: r.PostFormValue("scope"),
		Name: strings.TrimSpace(r.PostFormValue("name")),
	}
	if l.Scope == "shared" {
		l.Queues, l.Types = commaList(r.PostFormValue("queues")), commaList(r.PostFormValue("types"))
	}
	if r.PostFormValue("do") == "remove" {
		if v := r.ask(question{
			Title: "Remove a limit of " + cmp.Or(l.Queue, l.Name) + "?", Button: "Remove the limit", Path: "limits",
			Back:        "limits",
			Consequence: "Jobs that wait for it are handed out at once. To undo this, set the limit again.",
		}); v != nil {
			return v, nil
		}
		if err := r.service.RemoveLimit(r.Context(), r.caller, l.Queue, l.Scope, l.Name); err != nil {
			return nil, err
		}
		return r.back("limits", "The limit is removed.")
	}
	members, err := throttleForm(r.PostForm)
	if err == nil {
		err = fill(&l.Throttle, members)
	}
	if err == nil {
		_, err = r.service.PutLimit(r.Context(), r.caller, l)
	}
	if err == nil {
		return r.back("limits", "The limit is set.")
	}
	return again(r, err, limitsPage, func(d *limitsData, reason string) {
		d.Problem, d.Open = reason, true
		for _, field := range selectors {
			d.Form[field] = r.PostFormValue(field)
		}
		typedFields(d.Fields, r.PostForm)
	})
}

// commaList splits the names in a field at commas.
func commaList(text string) (names []string) {
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// slotsOf returns the leases that count against a limit, for the types or keys that the page shows.
func slotsOf(l service.Limit) (slots []service.Slot) {
	for _, use := range l.Uses[:min(len(l.Uses), shownUses)] {
		slots = append(slots, use.Slots...)
	}
	return slots
}

// shownUses limits the types or keys of a limit that the page shows.
const shownUses = 5

// keyLabel makes a unique key readable. Front-ends mark keys of their own key space with a control character and a
// letter, and derive some keys from a job's content.
func keyLabel(key string) string {
	if given := core.UniqueLabel(key); given != key {
		key = given
	} else if len(key) > 2 && key[0] < ' ' {
		key = key[2:]
	}
	if !strings.ContainsFunc(key, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) {
		return key
	}
	if function, unique, ok := strings.Cut(key, "\x00"); ok {
		return function + " " + unique
	}
	return "made from the job's content"
}
