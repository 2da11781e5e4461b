package docsite

import (
	"encoding/json"

	"github.com/russross/blackfriday/v2"
)

// section is an entry of the search: a heading with the text below it.
type section struct {
	Page  string `json:"p"` // the page's title
	Title string `json:"t,omitempty"`
	Href  string `json:"h"`
	Text  string `json:"x"`
}

// searchIndex is a script that assigns all sections to a variable: a script is loaded where the site is opened as a file, too.
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
	d.children(func(n *blackfriday.Node) {
		if n.Type == blackfriday.Heading && n.Level > 1 {
			list = append(list, section{Page: title, Title: plainText(n), Href: pageName(d.name) + "#" + n.HeadingID})
			return
		}
		last := &list[len(list)-1]
		last.Text += plainText(n) + " "
	})
	return list
}
