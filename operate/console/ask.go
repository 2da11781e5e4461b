package console

import (
	"slices"
	"strings"

	"broker/frontends/access"
)

// question asks whether a change that cannot be taken back is meant.
type question struct {
	Title, Consequence, Button string
	Path, Back                 string // of the form; of the page to return to
	Fields                     []field
}

// field is a value that the form has posted and posts again.
type field struct{ Name, Value string }

// ask is the page of a question, which posts the same form again; nil: the question is answered, or not the caller's to answer.
func (r *request) ask(q question) *view {
	if r.PostFormValue("confirmed") == "yes" || !mayRole(r.caller, access.Operate) { // the service refuses the change
		return nil
	}
	for name, values := range r.PostForm {
		for _, value := range values {
			q.Fields = append(q.Fields, field{name, value})
		}
	}
	slices.SortStableFunc(q.Fields, func(a, b field) int { return strings.Compare(a.Name, b.Name) })
	return &view{page: "ask", title: q.Title, data: q, still: true}
}
