package docsite

import (
	"encoding/json"

	"github.com/yuin/goldmark/ast"
)

// section is an entry of the search: a heading with the text below it.
type section struct {
	Page  string `json:"p"` // the page's title
	Title string `json:"t,omitempty"`
	Href  string `json:"h"`
	Text  string `json:"x"`
}

// searchIndex is a script that assigns all sections to a variable. It is a script because browsers do not load JSON
// from the file system.
func searchIndex(pages []*document) ([]byte, error) {
	var all []section
	for _, d := range pages {
		all = append(all, d.sections()...)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	return append(append([]byte("window.docsIndex = "), text...), ";\n"...), nil
}

// sections cuts a page at its headings.
func (d *document) sections() []section {
	title := d.title()
	list := []section{{Page: title, Href: pageName(d.name)}}
	for n := d.root.FirstChild(); n != nil; n = n.NextSibling() {
		if h, isHeading := n.(*ast.Heading); isHeading && h.Level > 1 {
			href := pageName(d.name)
			if id, ok := h.AttributeString("id"); ok {
				if text, isText := id.([]byte); isText {
					href += "#" + string(text)
				}
			}
			list = append(list, section{Page: title, Title: plainText(h, d.source), Href: href})
			continue
		}
		last := &list[len(list)-1]
		last.Text += plainText(n, d.source) + " "
	}
	return list
}
