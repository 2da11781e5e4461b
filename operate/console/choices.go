package console

import "html/template"

// pageRows is the number of rows of a list.
const pageRows = 50

// choice is an option or link of a page.
type choice struct {
	Value, Label string
	URL          template.URL
	Chosen       bool
	Dangerous    bool
}

func choices(chosen string, pairs ...string) []choice {
	list := make([]choice, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, choice{Value: pairs[i], Label: pairs[i+1], Chosen: pairs[i] == chosen})
	}
	return list
}

// nextPage returns the link to the next page, empty on the last page.
func (r *request) nextPage(path, cursor string) template.URL {
	if cursor == "" {
		return ""
	}
	return joinURL(path, with(r.query, "cursor", cursor))
}
