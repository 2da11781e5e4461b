package console

import (
	"errors"
	"slices"
	"strings"

	"broker/access"
	"broker/operate/service"
)

// question asks for confirmation of a change that cannot be undone.
type question struct {
	Title, Consequence, Button string
	Path, Back                 string // of the form; of the page to return to
	Fields                     []field
}

// invalid refuses a value of a form.
func invalid(field, detail string) error {
	return &service.Error{Code: service.CodeInvalid, Field: field, Detail: detail}
}

// again shows the page of a form that was refused. fill puts the reason and the submitted values into the data of the
// page.
func again[D any](r *request, refusal error, page handler, fill func(d D, reason string)) (*view, error) {
	var refused *service.Error
	if !errors.As(refusal, &refused) {
		return nil, refusal
	}
	v, err := page(r)
	if err != nil {
		return nil, err
	}
	fill(v.data.(D), refused.Detail)
	v.status, v.still = r.console.options.Port.Status(refusal), true
	return v, nil
}

// field is a form value that the question posts again.
type field struct{ Name, Value string }

// ask returns the page of a question, which posts the same form again. It returns nil if the question is answered, or
// if the caller lacks the right.
func (r *request) ask(q question) *view {
	// the service refuses the change
	if r.PostFormValue("confirmed") == "yes" || !r.caller.Current().MaySome(access.Operate) {
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
