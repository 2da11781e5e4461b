package console

import (
	"cmp"
	"html/template"
	"net/url"
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
	Preview  []string      // what the limit of the form would do
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
		if d.Preview, err = r.limitPreview(r.query); err != nil {
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

// limitPreview says what the limit in a form would do to the jobs that there are now, or what is wrong with it. It is
// empty for limits whose jobs are not counted, and without a queue.
func (r *request) limitPreview(form url.Values) ([]string, error) {
	spec := limitSpec(form)
	members, err := throttleForm(form)
	if err == nil {
		err = fill(&spec.Throttle, members)
	}
	if err != nil {
		return refusal(err)
	}
	if spec.Queue == "" || spec.Scope == "shared" {
		return nil, nil
	}
	p, err := r.service.PreviewLimit(r.Context(), r.caller, spec)
	if p == nil || err != nil {
		lines, err := refusal(err)
		return lines, ignoreRefusal(err)
	}
	return []string{previewText(p, spec.Concurrency > 0 || spec.RatePerS > 0)}, nil
}

// previewText is a preview in words. limited: the limit says something.
func previewText(p *service.LimitPreview, limited bool) string {
	more := ""
	if !p.Exact {
		more = " or more"
	}
	text := num(p.Leased) + more + " running and " + num(p.Ready) + more + " ready now."
	if !limited {
		return text
	}
	text += " Running jobs go on."
	switch {
	case p.Ends > 0:
		text += " The next one starts when " + plural(p.Ends, "job") + " " + hasHave(p.Ends) + " ended; until then " +
			plural(p.Waits, "ready job") + " would wait."
	case p.Waits > 0:
		text += " " + plural(p.Ready-p.Waits, "job") + " may start at once, and " + num(p.Waits) + " would wait."
	default:
		text += " No job would wait now."
	}
	if p.EmptyInS > 0 {
		text += " At this rate the ready ones take at least " + seconds(p.EmptyInS) + "."
	}
	return text
}

func hasHave(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

// inUse returns the types or keys that count against a limit, busiest first.
func inUse(uses []service.LimitUse) []service.LimitUse {
	uses = slices.DeleteFunc(uses, func(u service.LimitUse) bool { return u.Taken == 0 && u.Ready == 0 })
	slices.SortStableFunc(uses, func(a, b service.LimitUse) int {
		return cmp.Or(cmp.Compare(b.Taken, a.Taken), cmp.Compare(b.Ready, a.Ready))
	})
	return uses
}

// limitSpec says for which jobs the limit in a form is.
func limitSpec(form url.Values) service.LimitSpec {
	l := service.LimitSpec{
		Queue: strings.TrimSpace(form.Get("queue")), Scope: form.Get("scope"), Name: strings.TrimSpace(form.Get("name")),
	}
	if l.Scope == "shared" {
		l.Queues, l.Types = commaList(form.Get("queues")), commaList(form.Get("types"))
	}
	return l
}

// changeLimits sets or removes a limit. It shows errors above the form, which keeps its values.
func changeLimits(r *request) (*view, error) {
	l := limitSpec(r.PostForm)
	if do := r.PostFormValue("do"); do == "preview" {
		r.query = r.PostForm
		v, err := limitsPage(r)
		if err == nil {
			v.still = true
		}
		return v, err
	} else if do == "remove" {
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
