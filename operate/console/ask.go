package console

import (
	"slices"
	"strings"

	"broker/frontends/access"
)

// question asks for confirmation of a change that cannot be undone.
type question struct {
	Title, Consequence, Button string
	Path, Back                 string // of the form; of the page to return to
	Fields                     []field
}

// field is a form value that the question posts again.
type field struct{ Name, Value string }

// ask returns the page of a question, which posts the same form again. It returns nil if the question is answered, or if the caller
// lacks the right.
func (r *request) ask(q question) *view {
	if r.PostFormValue("confirmed") == "yes" || !r.caller.Current().MaySome(access.Operate) { // the service refuses the change
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
